package conductor

import (
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// How old what was read may be.
const (
	recordsEvery  = 2 * time.Second  // records of missing members: a claim does not wake the watch
	manyEvery     = 10 * time.Second // the same, when so many are missing that all are read
	liveEvery     = 5 * time.Second  // live/, while somebody is missing
	servicesEvery = 30 * time.Second // live/, when only services are looked after
	manyRecords   = 64               // more are read with one recursive read
	disagreePause = 100 * time.Millisecond
)

// Step decides what to do about a view. It is pure: the same conductor, time and view give the same
// effects. The caller carries them out in order, brings the view up to date (what it wrote included)
// and calls Step again; when all it got was Wake, it waits for that time, for a change of the ready
// keys, the asks or the directive. Before the first step of a generation nothing needs to be read.
func (c State) Step(now time.Time, v View) (State, []Effect) {
	d := v.Directive
	if d.Act == registry.ActStop {
		return c, []Effect{CleanUp{KeepRoster: d.Roster.ID}, StepDown{}}
	}
	c.timers = c.entered(d, now)
	c.tenure = c.begun(c, v, now)
	if v.Trouble {
		c.loss = nil
	}
	c.timers = c.stopping(v.Asks, now)
	if i := slices.IndexFunc(v.Asks, func(a registry.Ask) bool { return a.Kind == registry.AskStop && !c.savesFirst(now, d, a) }); i >= 0 {
		return c, []Effect{stopped(c, now, v, v.Asks[i])}
	}
	if v.ReadyAt.IsZero() || v.ReadyGen != d.Gen {
		return c, []Effect{ReadReady{}}
	}
	if d.Act == registry.ActRun && (v.Roster == nil || v.Roster.Gen != d.Gen || v.Roster.Run != d.Run) && d.Roster.ID != "" {
		return c, []Effect{ReadRoster{Ref: d.Roster}}
	}
	r := newRuling(c, now, v)
	if !r.reads() {
		r.rule()
	}
	return r.c, r.out()
}

// ruling is one Step at work.
type ruling struct {
	c   State
	now time.Time
	v   View
	d   registry.Directive

	missing  []*absence // waited instances without a ready key, in rank order
	joining  []*absence // flex up: instances of the target that do not count yet
	services []*absence // services without a live key

	ended    map[string]int // instances per component that ended with 0
	done     map[string]int // instances per component that ended or failed for good
	failures []failure      // for good, in rank order

	due       []registry.Instance // records to read anew
	everybody bool                // all of them
	live      bool                // live/ to read anew
	effects   []Effect
	wake      time.Time
}

// absence is an instance that is not where it should be, with what is known of it.
type absence struct {
	registry.Instance
	facts *ComponentFacts
	rank  int
	since time.Time // when it was first seen missing
	rec   Record    // Inc is empty when there is no record
	live  bool
	res   result
}

func newRuling(c State, now time.Time, v View) *ruling {
	r := &ruling{c: c, now: now, v: v, d: v.Directive, ended: map[string]int{}, done: map[string]int{}}
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
	r.c.timers = r.c.missing(r.missing, now).revived(v)
	for _, a := range r.missing {
		a.since = r.c.absent[a.Instance]
	}
	return r
}

func (r *ruling) absence(in registry.Instance, f *ComponentFacts, rank int) *absence {
	rec, ok := r.v.Records[in]
	if !ok {
		rec = Record{At: r.v.AllAt}
	}
	return &absence{
		Instance: in, facts: f, rank: rank, rec: rec, live: r.v.Live[in],
		res: settled(rec.Member, r.d, f.Scope),
	}
}

// reads finds what has to be read: at once for what was just found missing, and again from time to
// time while it is. True means that nothing can be decided before.
func (r *ruling) reads() bool {
	now, period := false, recordsEvery
	if len(r.missing) > manyRecords {
		period = manyEvery
	}
	open, newest := 0, time.Time{}
	for _, a := range r.missing {
		if a.rec.At.Before(a.since) {
			r.due, now = append(r.due, a.Instance), true
		} else if a.res == unsettled {
			r.again(a, period)
		}
		if a.res == unsettled {
			open, newest = open+1, latest(newest, a.since)
		}
	}
	for _, a := range r.joining {
		r.again(a, recordsEvery)
	}
	for _, a := range r.services {
		r.again(a, servicesEvery)
	}
	switch {
	case open > 0 && r.v.LiveAt.Before(newest):
		r.live, now = true, true
	case open > 0, len(r.c.loss) > 0: // who comes back must be seen before it is lost again
		r.liveAgain(liveEvery)
	case r.hasServices():
		r.liveAgain(servicesEvery)
	}
	r.awaits()
	return r.looks() || now
}

func (r *ruling) again(a *absence, period time.Duration) {
	if at := a.rec.At.Add(period); a.rec.At.IsZero() || !at.After(r.now) {
		r.due = append(r.due, a.Instance)
	} else {
		r.wakeAt(at)
	}
}

func (r *ruling) liveAgain(period time.Duration) {
	if at := r.v.LiveAt.Add(period); r.v.LiveAt.IsZero() || !at.After(r.now) {
		r.live = true
	} else {
		r.wakeAt(at)
	}
}

// rule decides, once everything is known that must be. At most one effect rewrites the directive,
// and then it is the only one.
func (r *ruling) rule() {
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
	case registry.ActStop: // Step has no rules for a run that is over
	}
	r.losses()
	r.drops()
}

// count gathers the results that count.
func (r *ruling) count() {
	for _, a := range r.missing {
		switch a.res {
		case endedWell:
			r.ended[a.Component]++
			r.done[a.Component]++
		case failedForGood:
			r.done[a.Component]++
			r.failures = append(r.failures, r.failureOf(a, a.rec.Budget, a.facts.Budget))
		case unsettled:
		}
	}
}

// only makes e the one effect of this step.
func (r *ruling) only(e Effect) bool {
	r.effects, r.due, r.everybody, r.live, r.wake = []Effect{e}, nil, false, false, time.Time{}
	return true
}

func (r *ruling) out() []Effect {
	out := r.effects
	if len(r.due) > 0 || r.everybody {
		out = append(out, r.readRecords())
	}
	if r.live {
		out = append(out, ReadLive{})
	}
	if !r.wake.IsZero() {
		out = append(out, Wake{At: r.wake})
	}
	return out
}

func (r *ruling) readRecords() ReadRecords {
	e := ReadRecords{Checkpoints: r.d.Act == registry.ActRun && len(r.missing) > 0 && r.refills()}
	if e.All = r.everybody || len(r.due) > manyRecords; !e.All {
		e.Of = r.due
	}
	return e
}

// refills tells that a restart of the gang has to know the checkpoints.
func (r *ruling) refills() bool { return r.c.Facts.GangBudget.RefillCheckpoint }

func (r *ruling) wakeAt(t time.Time) {
	if r.wake.IsZero() || t.Before(r.wake) {
		r.wake = t
	}
}

// next is the directive as it goes on: same run, one step further.
func (r *ruling) next() registry.Directive { return nextDirective(r.c, r.d, r.now) }

func nextDirective(c State, d registry.Directive, now time.Time) registry.Directive {
	d.Version, d.Seq, d.By, d.At = 1, d.Seq+1, c.Inc, wall(now)
	return d
}

// wall is a time as it is written: without the monotonic clock, in UTC, to the millisecond.
func wall(t time.Time) time.Time { return t.Round(0).UTC().Truncate(time.Millisecond) }

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
