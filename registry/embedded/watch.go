package embedded

import "strings"

// target is what a reader waits on: one key, everything under a prefix, or one session.
type target struct {
	kind targetKind
	name string
}

type targetKind int

const (
	oneKey targetKind = iota
	allUnder
	oneSession
)

// bell is rung once, by closing its channel, for all readers that wait on one target.
type bell struct {
	rung    chan struct{}
	waiting int
}

// watchers holds the bells. A write looks up its own keys and compares them with each prefix that a reader waits on;
// prefixes are few (a gang has about five), and readers of one target share a bell.
type watchers struct {
	bells    map[target]*bell
	prefixes map[string]*bell
}

func newWatchers() watchers {
	return watchers{bells: map[target]*bell{}, prefixes: map[string]*bell{}}
}

// wait joins the readers of the target. Each wait is followed by one leave.
func (w *watchers) wait(on target) *bell {
	b := w.find(on)
	if b == nil {
		b = &bell{rung: make(chan struct{})}
		if on.kind == allUnder {
			w.prefixes[on.name] = b
		} else {
			w.bells[on] = b
		}
	}
	b.waiting++
	return b
}

func (w *watchers) find(on target) *bell {
	if on.kind == allUnder {
		return w.prefixes[on.name]
	}
	return w.bells[on]
}

// leave removes the bell with its last reader, unless it has been rung and replaced.
func (w *watchers) leave(on target, b *bell) {
	b.waiting--
	if b.waiting == 0 && w.find(on) == b {
		w.drop(on)
	}
}

func (w *watchers) drop(on target) {
	if on.kind == allUnder {
		delete(w.prefixes, on.name)
	} else {
		delete(w.bells, on)
	}
}

// ring wakes all readers of what was touched.
func (w *watchers) ring(t changes) {
	for _, key := range t.Keys {
		w.ringOne(target{oneKey, key})
		for prefix := range w.prefixes {
			if strings.HasPrefix(key, prefix) {
				w.ringOne(target{allUnder, prefix})
			}
		}
	}
	for _, id := range t.Sessions {
		w.ringOne(target{oneSession, id})
	}
}

func (w *watchers) ringOne(on target) {
	if b := w.find(on); b != nil {
		close(b.rung)
		w.drop(on)
	}
}
