package member

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/sandbox"
)

// feeder is a guard's dead-man timer: it ends what the guard runs at a moment of CLOCK_BOOTTIME; 0 stops it.
type feeder = interface {
	Feed(end time.Duration) error
}

// deadManTimer is the timer of the process that runs. Its mutex may be held for long, by a guard that does not read:
// the Fence's own is not held meanwhile, so that peers and people are answered.
type deadManTimer struct {
	mu    sync.Mutex // held while the guard is written to
	guard feeder     // nil: no process runs

	fired atomic.Bool // the guard has ended the process by itself
}

// Arm begins with a start: from here on the guard ends what it runs when this agent does not say in time that it may
// go on. It refuses with errCutOff while the agent is cut off, whatever the machine knows of that.
func (f *Fence) Arm(guard feeder) error {
	f.timer.mu.Lock()
	defer f.timer.mu.Unlock()
	f.timer.fired.Store(false)
	f.timer.guard = guard
	if !f.timer.feed(f) {
		f.timer.guard = nil
		return errCutOff
	}
	return nil
}

// Disarm follows the proof that no process of an attempt is left.
func (f *Fence) Disarm() {
	t := &f.timer
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.guard == nil {
		return
	}
	if err := t.guard.Feed(0); err != nil && !errors.Is(err, sandbox.ErrGone) {
		f.cfg.log.Warn("dead-man timer not stopped", "err", err)
	}
	t.guard = nil
}

// TimerFired notes that the guard's timer ran out.
func (f *Fence) TimerFired() { f.timer.fired.Store(true) }

// EndedProcess tells that the guard's timer has ended the process of the last start.
func (f *Fence) EndedProcess() bool { return f.timer.fired.Load() }

// extend has the guard know until when the process may go on.
func (t *deadManTimer) extend(f *Fence) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feed(f)
}

// feed is called with the timer's mutex held, and without the Fence's. False: it is cut off, and no time is left.
func (t *deadManTimer) feed(f *Fence) bool {
	f.mu.Lock()
	standing, now := f.standing()
	end := f.contact.End(f.cfg.times)
	f.mu.Unlock()
	if end <= now || standing == conductor.CutOff {
		return false
	}
	if t.guard == nil {
		return true
	}
	if err := t.guard.Feed(end); err != nil && !errors.Is(err, sandbox.ErrGone) {
		f.cfg.log.Warn("dead-man timer not extended", "err", err)
	}
	return true
}
