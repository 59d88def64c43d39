package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// ending is what is known of the end of a guard.
type ending struct {
	once     sync.Once
	err      error         // of Close
	patience time.Duration // of Close with a guard that says nothing
	ended    chan struct{} // closed when the guard and all that it left are gone
	stuck    chan struct{} // closed at the first Stuck after Close that ends the wait

	mu    sync.Mutex
	begun bool                // Close was called
	timer bool                // the dead-man timer ran out
	left  []proc.StuckProcess // since Close, or after the guard's death
}

// closePatience is more than the guard needs to name what is stuck (5 s) and to give up on a disk (10 s).
const closePatience = 20 * time.Second

// sweepTime is how long what a guard has left may take to die.
const sweepTime = 5 * time.Second

func newEnding() *ending {
	return &ending{patience: closePatience, ended: make(chan struct{}), stuck: make(chan struct{})}
}

// begin says that Close was called.
func (e *ending) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = true
}

// timerRanOut notes that the dead-man timer ended all.
func (e *ending) timerRanOut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.timer = true
}

// why says how the end came about.
func (e *ending) why() (closed, timer bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.begun, e.timer
}

// isStuck notes a process that the guard names. One that runs is slow to die, on a machine that is slow: only what
// waits in the kernel, or may not be killed, ends the wait for it.
func (e *ending) isStuck(p proc.StuckProcess) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.begun || p.State != 'D' && p.Err == nil {
		return
	}
	e.left = append(e.left, p)
	if len(e.left) == 1 {
		close(e.stuck)
	}
}

// leaves says what is alive after the guard's end.
func (e *ending) leaves(left []proc.StuckProcess) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left = left
}

// await is true when the guard has ended or has named a process that will not die.
func (e *ending) await(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-e.ended:
	case <-e.stuck:
	case <-timer.C:
		return false
	}
	return true
}

// outcome is a *proc.StuckError when something is left.
func (e *ending) outcome() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.left) > 0 {
		return &proc.StuckError{Processes: e.left}
	}
	return nil
}

// Close kills everything and returns when it is proved gone, the guard included, and its goroutines have ended. When
// something will not die it returns a *proc.StuckError; the guard stays and goes on trying.
func (g *Guard) Close() error {
	g.ending.once.Do(func() {
		if err := g.close(); err != nil {
			g.ending.err = fmt.Errorf("close guard: %w", err)
		}
		close(g.events.closed)
		select {
		case <-g.ending.ended:
			g.work.Wait()
		default: // a guard that goes on trying keeps its reader
		}
	})
	return g.ending.err
}

func (g *Guard) close() error {
	g.ending.begin()
	g.link.shut()
	g.sessions.shut()
	if err := g.lifeline.Close(); err != nil {
		return err
	}
	if !g.ending.await(g.ending.patience) {
		// Stopped, or its disk hangs. Killed, it leaves its processes to us.
		if err := g.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		if !g.ending.await(sweepTime + time.Second) {
			return proc.Stuck([]int{g.PID()})
		}
	}
	if err := g.ending.outcome(); err != nil {
		return err
	}
	ctx, cancel := bounded(sweepTime)
	defer cancel()
	return g.around.remove(ctx)
}

// bounded is for an end that must come about whoever has called off what it ends: a kill that a cancelled context broke
// off would leave processes behind.
func bounded(d time.Duration) (context.Context, context.CancelFunc) {
	// See above: the end must come about.
	return context.WithTimeout(context.Background(), d)
}
