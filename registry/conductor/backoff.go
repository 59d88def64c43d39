package conductor

import (
	"time"

	"github.com/muster-agent/muster/registry"
)

// Backoff is the pause before restarts that follow each other (muster.restart.backoff).
type Backoff struct{ Min, Max time.Duration }

// Pause is how long the n-th restart in a row waits: the first not at all, the second Min, each further one twice as
// long as the last, up to Max.
func (b Backoff) Pause(n int) time.Duration {
	if n < 2 {
		return 0
	}
	d := min(b.Min, b.Max)
	for range n - 2 {
		if d >= b.Max/2 {
			return b.Max
		}
		d *= 2
	}
	return d
}

// EndsRow tells whether a run that lasted so long ends a row of restarts: it was longer than the window in which
// restarts count.
func (r BudgetRule) EndsRow(lasted time.Duration) bool { return r.Window > 0 && lasted > r.Window }

// restart rebuilds the generation after a failure, with the pause that its place in the row asks for. A failure that
// costs no budget counts in the row too: a member that cannot even begin would else form one generation after the
// other. A new checkpoint ends the row where it refills the budget.
//
// How long the generation has run is this conductor's own clock: the wall clocks of several hosts do not agree. A new
// conductor has seen less of it, so that the pause is rather too long.
func (r *decision) restart(first, why string, b registry.Budget) bool {
	rule := r.c.Facts.GangBudget
	if rule.EndsRow(r.now.Sub(r.c.since)) || r.refilled() {
		r.d.Row = 0
	}
	r.d.Row++
	if r.rest = rule.Backoff.Pause(r.d.Row); r.rest > 0 {
		why += " (restarting after a pause of " + seconds(r.rest) + ")"
	}
	return r.rebuild(first, why, b)
}

// refilled tells whether a checkpoint has refilled the gang's budget since the last restart that was charged.
func (r *decision) refilled() bool {
	return r.refills() && !r.d.Budget.FromBeginning && r.newestStep() > r.d.Budget.Step
}
