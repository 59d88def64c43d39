package publisher

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
)

// What the last end of each instance says is counted once, by Slider's names.
func TestCounts(t *testing.T) {
	one := 1
	members := []consul.MemberStatus{}
	add := func(phase registry.Phase, exit *registry.MemberExit) {
		m := consul.MemberStatus{}
		m.Component, m.Index, m.Phase, m.Attempt, m.Exit = "worker", len(members), phase, 1, exit
		members = append(members, m)
	}
	add(registry.PhaseReady, nil)
	add(registry.PhaseReady, &registry.MemberExit{Class: registry.ClassPreempted, Signal: 15}) // and began again
	add(registry.PhaseLost, nil)
	add(registry.PhaseFailed, &registry.MemberExit{Class: registry.ClassHost})
	add(registry.PhaseFailed, &registry.MemberExit{Class: registry.ClassImage})
	add(registry.PhaseFailed, &registry.MemberExit{Class: registry.ClassApp, Code: &one})
	add(registry.PhaseFailed, &registry.MemberExit{Class: registry.ClassOOM, Signal: 9})
	add(registry.PhaseEnded, nil)
	got := componentOf(&appdef.Component{Name: "worker", Instances: 8}, consul.Status{}, members)
	want := componentView{
		Name: "worker", Instances: 8, Started: 8, Completed: 1, Failed: 4, StartFailed: 1, NodeFailed: 2, Preempted: 1,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// Instances beyond the count are on their way out; those that are missing wait for hosts of their own, if they must.
func TestFlexed(t *testing.T) {
	live := func(i int) memberView {
		return memberView{Component: "worker", Index: i, Instance: "w", Phase: registry.PhaseReady, Up: true}
	}
	apart := map[string]string{"yarn.component.placement.policy": "4"}
	for _, c := range []struct {
		wanted                        int
		resources                     map[string]string
		releasing, requested, pending int
	}{
		{2, nil, 0, 0, 0},
		{1, apart, 1, 0, 0},
		{4, nil, 0, 2, 0},
		{4, apart, 0, 2, 2},
	} {
		v := View{Members: []memberView{live(0), live(1)}}
		info := v.component(componentView{Name: "worker", Instances: c.wanted, Resources: c.resources})
		if info.Releasing != c.releasing || info.Requested != c.requested || info.PendingAA != c.pending ||
			info.IsAAOutstanding != (c.pending > 0) {
			t.Errorf("2 of %d, %v: got %+v", c.wanted, c.resources, info)
		}
	}
}
