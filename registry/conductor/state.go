package conductor

import (
	"maps"
	"time"

	"github.com/muster-agent/muster/registry"
)

// State is what a conductor remembers beside the view: its timers. It is a value: maps are replaced, never changed. A
// new conductor starts with new timers.
type State struct {
	Facts Facts
	Inc   string    // of the agent that conducts
	Came  time.Time // when it first saw the gang's directive; zero: unknown
	// Handed: it was a member already when the last conductor stepped down, so the gang was never without anybody.
	Handed bool
	timers
	tenure
}

// New is the state of a new conductor, run by the agent inc.
func New(f Facts, inc string) State { return State{Facts: f, Inc: inc} }

// timers are the clocks of a conductor.
type timers struct {
	run      string
	gen      int
	act      registry.Act
	since    time.Time                       // when this conductor first saw the directive: the barrier's clock
	free     int                             // how many components the directive releases
	step     time.Time                       // when that number was first seen
	complete time.Time                       // since when every key of a waiting generation exists; zero: not yet
	save     int                             // the last save that began
	saveAt   time.Time                       // when this conductor first saw that save
	stopAt   time.Time                       // when a save before a stop was first asked for; zero: none is
	target   map[string]int                  // of the flex under way
	targetAt time.Time                       // when this conductor first saw that target
	targetIx uint64                          // the index of the directive then
	counts   map[string]int                  // in force
	countsAt time.Time                       // when this conductor first saw these counts
	absent   map[registry.Instance]time.Time // since when an awaited instance has had no ready key
	loss     map[registry.Instance]lossTimer // since when a member has had a record, but no live key
	mass     bool                            // more than half of the gang had no live key at the last check
}

// lossTimer belongs to one incarnation; that of a successor starts anew.
type lossTimer struct {
	inc   string
	since time.Time
	end   time.Time
}

// tenure is what a conductor knows about the gang before its own time. When all agents were killed or left, and are
// launched again in the instance scope, each could continue with its own row: nobody would notice that the whole gang
// is new. A new conductor therefore checks once whether any member of the roster is still alive.
type tenure struct {
	began     time.Time // first step, or the last read that failed
	continued bool      // a member was alive before all others could have been relaunched
}

// entered starts the clocks of a new directive.
func (t timers) entered(v View, now time.Time) timers {
	d := v.Directive
	if n := saves(d); n != t.save || t.saveAt.IsZero() {
		t.save, t.saveAt = n, now
	}
	if !maps.Equal(t.target, d.Target) {
		t.target, t.targetAt, t.targetIx = d.Target, now, v.DirectiveIndex
	}
	if t.countsAt.IsZero() || !maps.Equal(t.counts, d.Counts) {
		t.counts, t.countsAt = d.Counts, now
	}
	if t.run == d.Run && t.gen == d.Gen && t.act == d.Act {
		if t.free != len(d.Released) {
			t.free, t.step = len(d.Released), now
		}
		return t
	}
	t.run, t.gen, t.act, t.since = d.Run, d.Gen, d.Act, now
	t.free, t.step = len(d.Released), now
	t.complete, t.absent = time.Time{}, nil
	return t
}

// returned drops the loss timers of members that were seen alive: the next loss starts a new one.
func (t timers) returned(v View) timers {
	back := func(in registry.Instance, _ lossTimer) bool { return v.Ready[in] || v.Records[in].Live }
	for in, l := range t.loss {
		if back(in, l) {
			t.loss = maps.Clone(t.loss)
			maps.DeleteFunc(t.loss, back)
			break
		}
	}
	return t
}

// prolonged moves the beginning of all loss timers by the length of a silence of the registry.
func (t timers) prolonged(silence time.Duration, now time.Time) timers {
	if silence <= 0 || len(t.loss) == 0 {
		return t
	}
	t.loss = maps.Clone(t.loss)
	for in, l := range t.loss {
		if l.since = l.since.Add(silence); l.since.After(now) {
			l.since = now
		}
		t.loss[in] = l
	}
	return t
}

// saves is how many saves have begun.
func saves(d registry.Directive) int {
	if d.Save == nil {
		return 0
	}
	return d.Save.Seq
}
