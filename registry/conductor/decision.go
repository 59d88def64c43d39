package conductor

import (
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// limit is how long a generation, or a replacement in a running generation, is waited for.
func (r *decision) limit() time.Duration {
	if r.c.Facts.Barrier > 0 {
		return r.c.Facts.Barrier
	}
	return r.c.Facts.Times.Barrier
}

func (r *decision) row(a *absence) (registry.Row, bool) {
	if r.v.Roster == nil {
		return registry.Row{}, false
	}
	rows := r.v.Roster.Rows
	if a.rank < len(rows) && rows[a.rank].Instance == a.Instance {
		return rows[a.rank], true
	}
	return r.v.Roster.Row(a.Instance)
}

// rebuild is T11.
func (r *decision) rebuild(first, why string, b registry.Budget) bool {
	n := r.next()
	n.Gen, n.Act, n.Budget, n.First, n.Why = n.Gen+1, registry.ActWait, b, first, why
	n.Resume, n.FromBeginning, n.Released, n.Rest = nil, "", nil, r.rest.Seconds()
	n.StopGrace = r.c.Facts.StopGrace.Seconds()
	return r.only(Rebuild{Index: r.v.DirectiveIndex, Directive: n})
}

// findServices lists the services. Nobody waits for them: the conductor only frees the index of a lost one for a
// replacement.
func (r *decision) findServices() {
	for i := range r.c.Facts.Components {
		f := &r.c.Facts.Components[i]
		if f.Waited {
			continue
		}
		for k := range r.c.Facts.count(r.d, i) {
			r.services = append(r.services, r.absence(registry.Instance{Component: f.Name, Index: k}, f, -1))
		}
	}
}

// The largest age of a record.
const (
	recordsEvery  = 2 * time.Second  // of a missing member: a claim does not wake the watch
	manyEvery     = 10 * time.Second // when so many members are missing that all records are read
	servicesEvery = 30 * time.Second // of a service
	manyRecords   = 64               // more records than this are read with one recursive read
	disagreePause = 100 * time.Millisecond
)

// decision is the work of one Step.
type decision struct {
	c   State
	now time.Time
	v   View
	d   registry.Directive

	missing  []*absence // waited instances without a ready key, in rank order
	joining  []*absence // flex up: instances of the target that are not members yet
	services []*absence // nobody waits for them
	removed  []*absence // indexes that a flex has removed, whose processes may still run

	rest time.Duration // how long the generation that this decision forms waits before it starts

	results
	output
}

// results are the ends that count.
type results struct {
	ended    map[string]int // instances per component that ended with 0
	done     map[string]int // instances per component that ended with 0 or failed for good
	failures []failure      // final failures, in rank order
}

// output collects what a decision asks for.
type output struct {
	due     []registry.Instance // records to read again
	all     bool                // read all records again
	effects []Effect
	wake    time.Time
}

// absence is an instance without a ready key, and what is known about it.
type absence struct {
	registry.Instance
	facts *ComponentFacts
	rank  int
	since time.Time // when it was first seen missing
	rec   Record    // Inc is empty when there is no record
	res   result
}

func newDecision(c State, now time.Time, v View) *decision {
	r := &decision{c: c, now: now, v: v, d: v.Directive, results: results{
		ended: map[string]int{},
		done:  map[string]int{},
	}}
	rank := 0
	for i := range c.Facts.Components {
		f := &c.Facts.Components[i]
		if !f.Waited {
			continue
		}
		n := c.Facts.count(r.d, i)
		for k := range n {
			if in := (registry.Instance{Component: f.Name, Index: k}); !v.Ready[in] {
				r.missing = append(r.missing, r.absence(in, f, rank+k))
			}
		}
		for k := n; k < r.d.Target[f.Name]; k++ {
			r.joining = append(r.joining, r.absence(registry.Instance{Component: f.Name, Index: k}, f, -1))
		}
		rank += n
	}
	r.findServices()
	r.findRemoved()
	r.c.timers = r.c.missing(r.missing, now).returned(v)
	for _, a := range r.missing {
		a.since = r.c.absent[a.Instance]
	}
	return r
}

// findRemoved lists the rows of the last sealed roster that the gang no longer has, until their records say that
// nothing runs there: nothing of a new generation, and no successor, may start beside it.
func (r *decision) findRemoved() {
	if r.d.Roster.ID == "" {
		return
	}
	for _, row := range r.v.Roster.Rows {
		f, uncounted := r.uncounted(row)
		if !uncounted || row.Done {
			continue
		}
		a := r.absence(row.Instance, f, -1)
		a.since = r.c.countsAt // what was read before may be of the time before the last acknowledgement
		if a.rec.At.Before(a.since) || a.rec.Phase == registry.PhaseJoined || a.rec.Phase == registry.PhaseReady {
			r.removed = append(r.removed, a)
		}
	}
}

// uncounted tells whether a row is of an awaited index that the gang no longer has.
func (r *decision) uncounted(row registry.Row) (*ComponentFacts, bool) {
	i := slices.IndexFunc(r.c.Facts.Components, func(f ComponentFacts) bool { return f.Name == row.Component })
	if i < 0 || !r.c.Facts.Components[i].Waited || row.Index < r.c.Facts.count(r.d, i) {
		return nil, false
	}
	return &r.c.Facts.Components[i], true
}

func (r *decision) absence(in registry.Instance, f *ComponentFacts, rank int) *absence {
	rec, ok := r.v.Records[in]
	if !ok {
		rec = Record{At: r.v.AllAt}
	}
	return &absence{
		Instance: in, facts: f, rank: rank, rec: rec, res: resultOf(rec.Member, r.d, f.Scope),
	}
}

func (r *decision) again(a *absence, period time.Duration) {
	if at := a.rec.At.Add(period); a.rec.At.IsZero() || !at.After(r.now) {
		r.due = append(r.due, a.Instance)
	} else {
		r.wakeAt(at)
	}
}

// only makes e the single effect of this step.
func (r *decision) only(e Effect) bool {
	r.output = output{effects: []Effect{e}}
	return true
}

func (r *decision) out() []Effect {
	out := r.effects
	if len(r.due) > 0 || r.all {
		out = append(out, r.readRecords())
	}
	if !r.wake.IsZero() {
		out = append(out, Wake{At: r.wake})
	}
	return out
}

func (r *decision) readRecords() ReadRecords {
	e := ReadRecords{Checkpoints: r.d.Act == registry.ActRun && len(r.missing) > 0 && r.refills()}
	if e.All = r.all || len(r.due) > manyRecords; !e.All {
		e.Of = r.due
	}
	return e
}

// refills tells whether a restart of the gang needs the checkpoints, because they may reset its budget.
func (r *decision) refills() bool { return r.c.Facts.GangBudget.RefillCheckpoint }

func (r *decision) wakeAt(t time.Time) {
	if r.wake.IsZero() || t.Before(r.wake) {
		r.wake = t
	}
}

// next is the directive of the same run, one step further.
func (r *decision) next() registry.Directive { return nextDirective(r.c, r.d, r.now) }

func nextDirective(c State, d registry.Directive, now time.Time) registry.Directive {
	d.Seq, d.By, d.At = d.Seq+1, c.Inc, wall(now)
	return d
}

// wall is a time in the form that is written: without the monotonic clock, in UTC, to the millisecond.
func wall(t time.Time) time.Time { return t.Round(0).UTC().Truncate(time.Millisecond) }

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// missing keeps the clock of every instance that has no ready key, and starts the clocks of new ones.
func (t timers) missing(list []*absence, now time.Time) timers {
	same := len(list) == len(t.absent)
	for i := 0; same && i < len(list); i++ {
		_, same = t.absent[list[i].Instance]
	}
	if same {
		return t
	}
	absent := make(map[registry.Instance]time.Time, len(list))
	for _, a := range list {
		at, ok := t.absent[a.Instance]
		if !ok {
			at = now
		}
		absent[a.Instance] = at
	}
	t.absent = absent
	return t
}
