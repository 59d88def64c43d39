package conductor

import (
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Step decides what to do about a view. It is pure: the same conductor, time and view give the same effects. The caller
// carries the effects out in order, updates the view (with its own writes too) and calls Step again. If the only effect
// is Wake, it waits for that time or for a change of the ready keys, the asks or the directive. The first step of a
// generation needs no reads.
func (c State) Step(now time.Time, v View) (State, []Effect) {
	d := v.Directive
	if d.Act == registry.ActStop {
		return c, []Effect{CleanUp{KeepRoster: d.Roster.ID}, StepDown{}}
	}
	c.timers = c.entered(v, now)
	c.tenure = c.begun(c, v, now)
	c.timers = c.prolonged(v.Trouble, now)
	if strays := straysOf(v.Asks, d); len(strays) > 0 {
		return c, strays
	}
	c.timers = c.stopping(v.Asks, now)
	if i := slices.IndexFunc(v.Asks, func(a registry.Ask) bool {
		return a.Kind == registry.AskStop && !c.savesFirst(now, d, a)
	}); i >= 0 {
		return c, []Effect{stopped(c, now, v, v.Asks[i])}
	}
	if v.ReadyAt.IsZero() || v.ReadyGen != d.Gen {
		return c, []Effect{ReadReady{}}
	}
	if !v.knowsRoster() {
		return c, []Effect{ReadRoster{Ref: d.Roster}}
	}
	r := newDecision(c, now, v)
	if !r.reads() {
		r.decide()
	}
	return r.c, r.out()
}

// straysOf drops what was asked of another run, or of a generation that is not yet: a restored registry has forgotten
// that. A word about a dead member (AskGone) names its incarnation, and is true in every run.
func straysOf(asks []registry.Ask, d registry.Directive) []Effect {
	var drops []Effect
	for _, a := range asks {
		if a.Kind != registry.AskGone && a.Run != "" && (a.Run != d.Run || a.Gen > d.Gen) {
			drops = append(drops, DropAsk{Ask: a})
		}
	}
	return drops
}

// reads finds what has to be read: at once for a newly missing member, then from time to time. True means that nothing
// can be decided before.
func (r *decision) reads() bool {
	now, period := false, recordsEvery
	if len(r.missing)+len(r.c.loss) > manyRecords {
		period = manyEvery
	}
	for _, a := range slices.Concat(r.missing, r.removed) {
		if a.rec.At.IsZero() || a.rec.At.Before(a.since) {
			r.due, now = append(r.due, a.Instance), true
		} else if a.res == noResult {
			r.again(a, period)
		}
	}
	for _, a := range r.joining {
		r.again(a, recordsEvery)
	}
	for _, a := range r.services {
		if _, missed := r.c.loss[a.Instance]; missed {
			r.again(a, period) // one that returns must be seen before it is lost again
		} else {
			r.again(a, servicesEvery)
		}
	}
	r.readAwaited()
	return r.readsAll() || now
}

// decide applies the rules once everything they need has been read. At most one effect rewrites the directive, and then
// it is the only one.
func (r *decision) decide() {
	r.count()
	if r.failed() || r.succeeded() {
		return
	}
	switch r.d.Act {
	case registry.ActWait:
		if r.barrier() {
			return
		}
	case registry.ActRun:
		if r.repair() || r.flex() || r.release() || r.save() || r.overdue() {
			return
		}
	case registry.ActStop: // Step has no rules for a finished run
	}
	r.losses()
	r.drops()
}

// count gathers the results that count.
func (r *decision) count() {
	for _, a := range r.missing {
		switch a.res {
		case endedWell:
			r.ended[a.Component]++
			r.done[a.Component]++
		case failedForGood:
			r.done[a.Component]++
			r.failures = append(r.failures, r.failureOf(a, a.rec.Budget, a.facts.Budget))
		case noResult:
		}
	}
}
