//go:build long

package conductor_test

import (
	"testing"
)

// TestExploreLong explores the larger settings: minutes, and up to 3 GB.
func TestExploreLong(t *testing.T) {
	for name, s := range map[string]setting{
		"wrong relaunch":       {Ranks: 2, Agents: 3, Budget: 1, Faults: faults{Crashes: 1, Fails: 1, Dups: 1}},
		"cut, wrong relaunch":  {Ranks: 2, Agents: 3, Budget: 1, Faults: faults{Cuts: 1, Dups: 1}},
		"cut and crash":        {Ranks: 2, Agents: 3, Budget: 1, Faults: faults{Cuts: 1, Crashes: 1}},
		"two crashes":          {Ranks: 2, Agents: 4, Budget: 2, Faults: faults{Crashes: 2, Fails: 1}},
		"early session end":    {Ranks: 2, Agents: 3, Budget: 1, Faults: faults{Crashes: 1, Spurious: 1}},
		"instance, cut":        {Ranks: 2, Agents: 3, Budget: 1, Instance: true, Faults: faults{Crashes: 1, Cuts: 1}},
		"instance, stop":       {Ranks: 2, Agents: 4, Budget: 1, Instance: true, Faults: faults{Crashes: 1, Fails: 1, Stops: 1}},
		"three ranks, failure": {Ranks: 3, Agents: 4, Budget: 1, Faults: faults{Crashes: 1, Fails: 1}},
		"clocks broken":        {Ranks: 2, Agents: 3, Budget: 1, NoAxiom: true, Faults: faults{Cuts: 1, Dups: 1}},
		"clocks broken, inst.": {Ranks: 2, Agents: 3, Budget: 1, NoAxiom: true, Instance: true, Faults: faults{Cuts: 1, Dups: 1}},
	} {
		t.Run(name, func(t *testing.T) { s.explore(t) })
	}
}

// TestExploreMutationsLong: every setting in which a rule was missed is sound with it.
func TestExploreMutationsLong(t *testing.T) {
	for _, tc := range mutations() {
		t.Run(tc.name(), func(t *testing.T) { tc.withTheRule().explore(t) })
	}
}
