package conductor_test

import (
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// TestRefusalsOfBuilds: both numbers, and what to do.
func TestRefusalsOfBuilds(t *testing.T) {
	ours := registry.DefaultTimes().Agreed()
	lost, fence := ours, ours
	lost.Lost, lost.Fence.Stop, fence.Fence.Stop = 90, 30, 30
	for want, err := range map[string]error{
		"this muster speaks protocol 1..1, run r has 2..3 and takes no agent below 2: install the muster of the run's other agents on this host": &conductor.ProtoError{
			Run: "r", Have: registry.Proto{Min: 1, Now: 1}, Want: registry.Proto{Min: 2, Now: 3},
		},
		"this muster speaks protocol 4..5, run r has 2..3: start this agent with a muster that speaks protocol 3, or begin a new run when it is over": &conductor.ProtoError{
			Run: "r", Have: registry.Proto{Min: 4, Now: 5}, Want: registry.Proto{Min: 2, Now: 3},
		},
		"times differ: this agent has --lost-grace 60s, the run uses 90s; fence stop 20s, the run uses 30s: give all agents of a run the same times": &conductor.TimesError{
			Differ: ours.Differ(lost),
		},
		"times differ: this agent has fence stop 20s, the run uses 30s: they are fixed by the build: install the muster of the run's other agents on this host": &conductor.TimesError{
			Differ: ours.Differ(fence),
		},
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}
