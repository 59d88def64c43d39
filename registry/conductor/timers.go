package conductor

import (
	"maps"
	"time"

	"github.com/muster-agent/muster/registry"
)

// timers is what a conductor remembers between steps. Maps are replaced, never changed: a Conductor
// is a value.
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

// missing keeps the clock of every instance that has no ready key and starts those of the new ones.
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
