package conductor

import (
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// begun keeps the clock of the tenure. Whoever came long ago has seen the conductor before it at work:
// a dead one's lock would have ended by then. And a generation that this conductor has formed itself
// is known to it.
func (t tenure) begun(c State, v View, now time.Time) tenure {
	if t.began.IsZero() {
		t.began = now
		t.continued = !c.Came.IsZero() && now.Sub(c.Came) >= c.Facts.Times.Expiry()
	}
	if v.Trouble {
		t.began = now // sessions may have been given more time
	}
	t.continued = t.continued || v.Directive.Act == registry.ActWait
	return t
}

// doubts tells that nothing shows yet that anybody of the roster is alive. An instance alone is its own
// gang: the same address is the same generation.
func (r *decision) doubts() bool {
	if r.c.continued || r.d.Act != registry.ActRun || r.v.Roster == nil || r.c.Facts.World(r.d) < 2 {
		return false
	}
	named := slices.ContainsFunc(r.v.Roster.Rows, func(row registry.Row) bool { return row.Inc == r.c.Inc })
	inPlace := slices.ContainsFunc(r.c.Facts.Components, func(f ComponentFacts) bool {
		return f.Waited && f.Scope == registry.ScopeInstance
	})
	r.c.continued = named || !inPlace
	return !r.c.continued
}

// readsAll asks for the one reading of everybody that doubts need. True: nothing can be decided before.
func (r *decision) readsAll() bool {
	if !r.doubts() || !r.v.AllAt.Before(r.c.began) && !r.v.LiveAt.Before(r.c.began) {
		return false
	}
	r.all, r.live = true, true
	return true
}

// fullRestart rebuilds a generation of which nobody is left: every row that still counts has another holder, or
// none for good. A live key may be a dead agent's until its session has ended; one that is there later
// shows that not all are new, whatever becomes of them. True means that the step's effect is decided.
func (r *decision) fullRestart() bool {
	if !r.doubts() {
		return false
	}
	gone, open := 0, false
	for _, row := range r.v.Roster.Rows {
		f, ok := r.c.Facts.component(row.Component)
		if !ok || !f.Waited {
			continue
		}
		rec, ok := r.v.Records[row.Instance]
		if !ok {
			rec = Record{At: r.v.AllAt}
		}
		live, ended := r.v.Live[row.Instance], resultOf(rec.Member, r.d, f.Scope) != noResult
		switch {
		case rec.Inc == row.Inc && live && r.shown(rec):
			r.c.continued = true
			return false
		case rec.Inc != row.Inc || rec.Phase == registry.PhaseLeft || rec.Phase == registry.PhaseLost:
			if !ended {
				gone++
			}
		case live || !ended: // it may be alive, or come back
			open = true
			r.watch(row.Instance, rec)
		}
	}
	if open || gone == 0 {
		return false
	}
	return r.rebuild("", "all agents were launched anew", r.d.Budget)
}

// shown tells that a live key belongs to a living agent. Its record must have been read after it, or the
// key could be a successor's.
func (r *decision) shown(rec Record) bool {
	return !r.v.LiveAt.Before(r.c.began.Add(r.c.Facts.Times.Expiry())) && !rec.At.Before(r.v.LiveAt)
}

// watch reads a member again while there is doubt: a successor may be ready before its predecessor's
// ready key is missed.
func (r *decision) watch(in registry.Instance, rec Record) {
	period := recordsEvery
	if len(r.v.Roster.Rows) > manyRecords {
		period = manyEvery
	}
	at := rec.At.Add(period)
	if end := r.c.began.Add(r.c.Facts.Times.Expiry()); r.v.LiveAt.Before(end) {
		r.liveAgain(min(liveEvery, max(end.Sub(r.v.LiveAt), 0)))
	} else if rec.At.Before(r.v.LiveAt) {
		at = r.now
	}
	switch {
	case at.After(r.now):
		r.wakeAt(at)
	case len(r.due) >= manyRecords:
		r.all = true
	case !slices.Contains(r.due, in):
		r.due = append(r.due, in)
	}
}
