package apps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// phases are the phases of instances in the order in which a person wants to see them: trouble first.
var phases = []machine.Phase{
	machine.Holding, machine.Backoff, machine.Fenced, machine.Superseded, machine.Stopping, machine.Leaving,
	machine.Finishing, machine.Standby, machine.Starting, machine.Claiming, machine.Staging, machine.Installed,
	machine.Waiting, machine.Running, machine.Done,
}

// rank is the place of an instance among the others: 0 for one whose process ended badly.
func rank(in status.Instance) int {
	if in.Exit != nil && *in.Exit != 0 && in.Failures > 0 {
		return 0
	}
	if i := slices.Index(phases, machine.Phase(in.Phase)); i >= 0 {
		return i + 1
	}
	return 1 // a phase of another build, or an agent that does not answer
}

// TroubleFirst are the instances with those in trouble first, else in the order in which they were.
func TroubleFirst(rows []status.Instance) []status.Instance {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b status.Instance) int { return rank(a) - rank(b) })
	return rows
}

// Counts says how many instances are in which phase, trouble first: 40 instances: 1 backoff, 2 waiting, 37 running.
func Counts(rows []status.Instance) string {
	var parts []string
	for i, in := range TroubleFirst(rows) {
		n := 0
		for _, other := range rows {
			if other.Phase == in.Phase {
				n++
			}
		}
		if part := fmt.Sprintf("%d %s", n, in.Phase); i == 0 || !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return appdef.Counted(len(rows), "instance") + ": " + strings.Join(parts, ", ")
}
