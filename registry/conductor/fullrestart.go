package conductor

import (
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// begun keeps the clock of the tenure. Three kinds of conductor know the gang already: one that came long ago has seen
// the previous conductor at work, because a dead one's lock would have ended by then; one that was there when that one
// stepped down; and one that has formed the generation itself.
func (t tenure) begun(c State, v View, now time.Time) tenure {
	if t.began.IsZero() {
		t.began = now
		t.continued = c.Handed || !c.Came.IsZero() && now.Sub(c.Came) >= c.Facts.Times.Expiry()
	}
	if v.Trouble > 0 {
		t.began = now // sessions may have been extended
	}
	t.continued = t.continued || v.Directive.Act == registry.ActWait
	return t
}

// doubts tells whether nothing shows yet that any member of the roster is alive. A single instance is its own gang: the
// same address means the same generation.
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

// readsAll asks for the one reading of all records that doubts need. True means that nothing can be decided before it.
func (r *decision) readsAll() bool {
	r.all = r.all || r.doubts() && r.v.AllAt.Before(r.c.began)
	return r.all
}

// fullRestart rebuilds a generation of which no member is left: every row that still counts has another holder, or none
// for good. A live key may belong to a dead agent until its session ends; a key that is still there later shows that
// not all members are new. True means that the step's effect is decided.
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
		ended := resultOf(rec.Member, r.d, f.Scope) != noResult
		switch {
		case rec.Inc == row.Inc && rec.Live && !rec.At.Before(r.doubtEnd()):
			r.c.continued = true
			return false
		case rec.Inc != row.Inc || rec.Phase == registry.PhaseLeft || rec.Phase == registry.PhaseLost:
			if !ended {
				gone++
			}
		case rec.Live || !ended: // it may be alive, or come back
			open = true
			r.watch(row.Instance, rec)
		}
	}
	if open || gone == 0 {
		return false
	}
	return r.restart("", "all agents were relaunched", r.d.Budget)
}

// doubtEnd is when the sessions of all agents that died before this tenure have ended.
func (r *decision) doubtEnd() time.Time { return r.c.began.Add(r.c.Facts.Times.Expiry()) }

// watch rereads a member while there is doubt: a successor may be ready before the conductor notices that its
// predecessor's ready key is gone.
func (r *decision) watch(in registry.Instance, rec Record) {
	period := recordsEvery
	if len(r.v.Roster.Rows) > manyRecords {
		period = manyEvery
	}
	at := rec.At.Add(period)
	if end := r.doubtEnd(); rec.At.Before(end) && end.Before(at) {
		at = end
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
