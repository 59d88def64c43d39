package conductor

import (
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Charge counts one restart. It returns ok false and an unchanged budget if the rule allows no more restarts: then the
// failure is final. now is wall time, because the window outlives agents and hosts. step is the newest checkpoint step
// known, 0 for none. If the rule says so, a step newer than at the last charge resets the budget first. After a restart
// without a checkpoint (FromBeginning) steps do not reset the budget until the gang has resumed from one: those steps
// may never be complete in all members, and then they are no progress.
func Charge(b registry.Budget, rule BudgetRule, now time.Time, step int64) (registry.Budget, bool) {
	if rule.RefillCheckpoint && !b.FromBeginning && step > b.Step {
		b = registry.Budget{Step: step}
	}
	b = within(b, rule.Window, now)
	if rule.Max >= 0 && b.Used >= rule.Max {
		return b, false
	}
	b.Used++
	if rule.Window > 0 && rule.Max >= 0 {
		b.At = append(slices.Clip(b.At), now)
	}
	return b, true
}

// within drops the restarts that are older than the window.
func within(b registry.Budget, window time.Duration, now time.Time) registry.Budget {
	if window <= 0 || len(b.At) == 0 {
		return b
	}
	var at []time.Time
	for _, t := range b.At {
		if now.Sub(t) < window {
			at = append(at, t)
		}
	}
	b.At, b.Used = at, len(at)
	return b
}
