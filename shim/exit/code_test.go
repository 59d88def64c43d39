package exit

import (
	"testing"

	"github.com/muster-agent/muster/registry"
)

func TestCode(t *testing.T) {
	three, zero := 3, 0
	verdict := func(c registry.Class, x *registry.MemberExit) registry.Verdict {
		return registry.Verdict{Outcome: registry.Failed, Class: c, First: "worker-1", Exit: x}
	}
	tests := []struct {
		name              string
		v                 registry.Verdict
		first, other, run int
	}{
		{"succeeded", registry.Verdict{Outcome: registry.Succeeded}, 0, 0, 0},
		{"app", verdict(registry.ClassApp, &registry.MemberExit{Code: &three}), 3, 93, 3},
		{"app killed", verdict(registry.ClassApp, &registry.MemberExit{Signal: 9}), 137, 93, 137},
		{"app with 0", verdict(registry.ClassApp, &registry.MemberExit{Code: &zero}), 1, 93, 1},
		{"oom", verdict(registry.ClassOOM, &registry.MemberExit{Signal: 9}), 137, 93, 137},
		{"host", verdict(registry.ClassHost, nil), 75, 75, 75},
		{"gpu", verdict(registry.ClassGPU, nil), 75, 75, 75},
		{"preempted", verdict(registry.ClassPreempted, nil), 75, 75, 75},
		{"network", verdict(registry.ClassNetwork, nil), 69, 69, 69},
		{"data", verdict(registry.ClassData, nil), 69, 69, 69},
		{"image", verdict(registry.ClassImage, nil), 69, 69, 69},
		{"timeout", verdict(registry.ClassTimeout, nil), 76, 76, 76},
		{"definition", verdict(registry.ClassDefinition, nil), 65, 65, 65},
		{"not permitted", verdict(registry.ClassNotPermitted, nil), 77, 77, 77},
		{"muster", verdict(registry.ClassMuster, nil), 70, 70, 70},
		{"stopped", registry.Verdict{Outcome: registry.Stopped, By: "stop"}, 0, 0, 0},
		{"Ctrl-C", registry.Verdict{Outcome: registry.Stopped, By: "interrupt"}, 0, 0, 130},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := [3]int{Of(tt.v, "worker-1"), Of(tt.v, "ps-0"), Of(tt.v, "")}
			if want := [3]int{tt.first, tt.other, tt.run}; got != want {
				t.Errorf("first, other, run: got %v, want %v", got, want)
			}
		})
	}
}
