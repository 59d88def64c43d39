package signals

import (
	"os"
	"time"
)

// echoTime is how soon after a signal the same one again is the same wish: timeout(1), and launchers that signal the
// process and then its group, send it twice at once. A person's second Ctrl-C comes later.
const echoTime = 50 * time.Millisecond

// Repeat tells a wish that came twice from two.
type Repeat struct {
	last os.Signal
	at   time.Time
}

// Again tells that the signal is the one before, heard again.
func (e *Repeat) Again(sig os.Signal, at time.Time) bool {
	again := sig == e.last && at.Sub(e.at) < echoTime
	e.last, e.at = sig, at
	return again
}
