package registry

import "time"

// timers is what a conductor remembers between steps. The maps are replaced, never changed: a
// Conductor is a value.
type timers struct {
	gen    int // generation and act that the others belong to
	act    Act
	run    string
	since  time.Time              // when this conductor first saw them: the barrier's clock
	absent map[Instance]time.Time // since when a waited instance has no ready key
	dead   map[Instance]lossTimer // since when an instance has had a record, but no live key
	asked  map[string]time.Time   // when a read was asked for last, until its answer
}

// lossTimer belongs to one incarnation: a successor's begins anew.
type lossTimer struct {
	inc   string
	since time.Time
}
