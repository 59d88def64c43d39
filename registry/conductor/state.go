package conductor

import (
	"maps"
	"time"

	"github.com/muster-agent/muster/registry"
)

// State is what a conductor remembers beyond the view: its timers. It is a value: maps are replaced, never changed.
// A new conductor starts with new timers.
type State struct {
	Facts Facts
	Inc   string    // of the agent that conducts
	Came  time.Time // when it first saw the gang's directive; zero: unknown
	timers
	tenure
}

// New makes the state of a conductor that begins, of the agent inc.
func New(f Facts, inc string) State { return State{Facts: f, Inc: inc} }

// timers are the clocks of a conductor: since when it has seen what.
type timers struct {
	run      string
	gen      int
	act      registry.Act
	since    time.Time                       // when this conductor first saw that directive: the barrier's clock
	free     int                             // how many components it releases
	step     time.Time                       // when it was first seen to release so many
	complete time.Time                       // since when every key of a waiting generation is there; zero: not
	save     int                             // the last save that was begun
	saveAt   time.Time                       // when this conductor first saw that
	stopAt   time.Time                       // when it first saw that a save is asked for before a stop; zero: none is
	absent   map[registry.Instance]time.Time // since when a waited instance has had no ready key
	loss     map[registry.Instance]lossTimer // since when a member has had a record, but no live key
	mass     bool                            // more than half of the gang had none when that was last looked at
}

// lossTimer belongs to one incarnation; a successor's begins anew.
type lossTimer struct {
	inc   string
	since time.Time
	end   time.Time
}

// tenure is what a conductor knows of the gang before its time. When all agents were killed, or have
// left, and are launched again in the instance scope, each of them could go on with its own row: nobody
// would see that the whole gang is another one. A new conductor therefore asks once whether anybody
// whom the roster names is still there.
type tenure struct {
	began     time.Time // first step, or the last trouble
	continued bool      // somebody was here before all others can have come anew
}

// entered starts the clocks of a directive that was not seen before.
func (t timers) entered(d registry.Directive, now time.Time) timers {
	if n := saves(d); n != t.save || t.saveAt.IsZero() {
		t.save, t.saveAt = n, now
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

// revived drops the loss timers of those who were seen alive: the next loss begins a new one.
func (t timers) revived(v View) timers {
	back := func(in registry.Instance, l lossTimer) bool {
		return v.Ready[in] && !v.ReadyAt.Before(l.since) || v.Live[in] && !v.LiveAt.Before(l.since)
	}
	for in, l := range t.loss {
		if !back(in, l) {
			continue
		}
		t.loss = maps.Clone(t.loss)
		maps.DeleteFunc(t.loss, back)
		break
	}
	return t
}

// saves is how many saves were begun.
func saves(d registry.Directive) int {
	if d.Save == nil {
		return 0
	}
	return d.Save.Seq
}
