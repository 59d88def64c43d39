package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// guards are the guard of the instance and its successors: a guard that was killed, or whose dead-man timer ran out, is
// replaced before the next start.
type guards struct {
	log   *slog.Logger
	park  func(context.Context) (*sandbox.Guard, error)
	heard func(*ledger, sandbox.Event)

	mu       sync.Mutex
	guard    *sandbox.Guard // nil: none has been started
	all      []*sandbox.Guard
	lost     bool          // it was killed: the next rebind starts another
	ending   chan struct{} // closed when a guard whose timer ran out has ended; nil: no timer has
	watching sync.WaitGroup
}

// ledger is what a guard has reported of its attempts.
type ledger struct {
	exits   map[int]sandbox.Exit
	started map[int]time.Time
	lost    map[string]int64 // bytes of output, by stream
}

// parkPatience is the limit for the start of a guard, and for the end of one.
const parkPatience = 30 * time.Second

func (g *guards) start(ctx context.Context) error {
	guard, err := g.park(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.guard, g.lost = guard, false
	g.all = append(g.all, guard)
	g.mu.Unlock()
	g.watching.Go(func() {
		l := &ledger{exits: map[int]sandbox.Exit{}, started: map[int]time.Time{}, lost: map[string]int64{}}
		for event := range guard.Events() {
			g.heard(l, event)
		}
	})
	return nil
}

// now is the guard that starts the next attempt.
func (g *guards) now() *sandbox.Guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.guard
}

// replace starts another guard after a loss of the last one.
func (g *guards) replace(ctx context.Context) {
	g.mu.Lock()
	ending := g.ending
	g.mu.Unlock()
	if ending != nil { // its process ended first
		select {
		case <-ending:
		case <-time.After(parkPatience):
			g.log.Error("guard of the last attempt has not ended")
		}
	}
	g.mu.Lock()
	lost := g.lost
	g.mu.Unlock()
	if !lost {
		return
	}
	// The guard outlives the effect that needs it: only the time of its start bounds this.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parkPatience)
	defer cancel()
	if err := g.start(ctx); err != nil {
		g.log.Error("replacement guard not started", "err", err)
	}
}

// timerFired notes that a guard ends by its dead-man timer.
func (g *guards) timerFired() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ending = make(chan struct{})
}

// gone notes that a guard has ended unasked.
func (g *guards) gone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = true
	if g.ending != nil {
		close(g.ending)
		g.ending = nil
	}
}

// close ends all guards, the last one first. False: a process of a guard does not end.
func (g *guards) close() (ended bool) {
	g.mu.Lock()
	all := g.all
	g.mu.Unlock()
	ended = true
	for _, guard := range slices.Backward(all) {
		if err := guard.Close(); err != nil && !errors.Is(err, sandbox.ErrGone) {
			g.log.Error("guard not ended", "err", err)
			ended = false
		}
	}
	if ended { // otherwise its events may never end
		g.watching.Wait()
	}
	return ended
}

// hear turns a guard's reports into events of the machine: an attempt is over when its process has exited and no
// process of it is left.
func (p *Process) hear(l *ledger, event sandbox.Event) {
	switch e := event.(type) {
	case sandbox.Started:
		l.started[e.Attempt] = time.Now()
		if w := p.watchOf(e.Attempt); w != nil {
			w.born(e.Own)
		}
	case sandbox.Lingers:
		if w := p.watchOf(e.Attempt); w != nil {
			w.left(e)
		}
	case sandbox.Adopted: // Adopt has logged it
	case sandbox.Exited:
		l.exits[e.Attempt] = e.Exit
		p.currentSides().processOver(e.Exit.Code != nil && *e.Exit.Code == 0)
	case sandbox.Empty:
		x, ok := l.exits[e.Attempt]
		if !ok {
			return
		}
		delete(l.exits, e.Attempt)
		p.Fence.Disarm()
		p.attemptOver()
		if !e.LogsComplete {
			p.Log.Warn("the last lines of the log may be missing: its disk does not answer")
		}
		end := p.keepEnd(p.judge(x, x.At.Sub(l.started[e.Attempt])))
		p.Ended(machine.Event{Kind: machine.Gone, Attempt: e.Attempt, Exit: end})
	case sandbox.Stuck:
		p.Log.Error("a process does not die", "process", e.StuckProcess.String())
	case sandbox.LogLost:
		l.lost[e.Stream] += e.Bytes
		p.Warn("lost "+e.Stream, lostOutput(p.logs.path(e.Stream+".log"), l.lost[e.Stream], e.Err))
	case sandbox.DeadMan:
		p.Log.Error("this agent could not say in time that it is in touch with the registry: its guard has ended the " +
			"process")
		p.Fence.TimerFired()
		p.guards.timerFired()
	case sandbox.Gone:
		p.Log.Error("guard has ended unasked", "err", e.Err, "left", e.Left)
		p.guards.gone()
	}
}

// Guard names the guard for the agent that clears up after this one; nil before there is a guard.
func (p *Process) Guard() *registry.ProcessRef {
	g := p.guards.now()
	if g == nil {
		return nil
	}
	return &registry.ProcessRef{Pid: g.PID(), Start: g.StartTicks()}
}

// Holds tells that a process of this host belongs to the instance.
func (p *Process) Holds(pid int) bool { return p.guards.now().Holds(pid) }

// Load is what the instance's processes hold and have used now; false: it has no guard yet, or that has ended.
func (p *Process) Load() (cgroup.Load, bool) {
	g := p.guards.now()
	if g == nil {
		return cgroup.Load{}, false
	}
	l, err := g.Load()
	return l, err == nil
}

// lostOutput warns that a log misses what the process wrote: the process goes on, and its end says nothing of it.
func lostOutput(path string, bytes int64, err error) string {
	text := fmt.Sprintf("%d bytes of the process's output are lost: they could not be written to %s: %v", bytes, path,
		err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		text += "; free some space there"
	}
	return text
}
