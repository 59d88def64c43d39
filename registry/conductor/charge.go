package conductor

import (
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Charge counts one restart. ok is false, and the budget unchanged, when the rule allows no more:
// then the failure is final. now is wall time: the window outlives agents and hosts. step is the
// newest checkpoint step known, 0 for none; a newer one than at the last charge empties the account
// first, if the rule says so. After the gang began anew none does before it has gone on from one: what it saves may
// never be everybody's, and is no progress then.
func Charge(b registry.Budget, rule BudgetRule, now time.Time, step int64) (registry.Budget, bool) {
	if rule.RefillCheckpoint && !b.Anew && step > b.Step {
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

// within forgets the restarts that the window no longer holds.
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
