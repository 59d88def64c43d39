package process

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/sandbox"
)

// guards are the guard of the instance and those that come after it: one that was killed, or whose dead-man timer ran
// out, is replaced before the next start.
type guards struct {
	log   *slog.Logger
	park  func(context.Context) (*sandbox.Guard, error)
	heard func(*sandbox.Guard, *ledger, sandbox.Event)

	mu       sync.Mutex
	guard    *sandbox.Guard // nil: none has been started
	all      []*sandbox.Guard
	lost     bool          // it was killed: the next rebind parks another
	ending   chan struct{} // closed when the guard has ended whose timer ran out; nil: its timer has not
	watching sync.WaitGroup
}

// ledger is what a guard has said of its attempts so far.
type ledger struct {
	exits   map[int]sandbox.Exit
	started map[int]time.Time
}

// parkPatience bounds the start of a guard, and the wait for the end of one.
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
		l := &ledger{exits: map[int]sandbox.Exit{}, started: map[int]time.Time{}}
		for event := range guard.Events() {
			g.heard(guard, l, event)
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

// replace parks another guard where the last one was killed, or its timer has ended it.
func (g *guards) replace(ctx context.Context) {
	g.mu.Lock()
	ending := g.ending
	g.mu.Unlock()
	if ending != nil { // its process went before it
		select {
		case <-ending:
		case <-time.After(parkPatience):
			g.log.Error("the guard does not end")
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
		g.log.Error("park another guard", "err", err)
	}
}

// timerFired notes that a guard ends by its dead-man timer.
func (g *guards) timerFired() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ending = make(chan struct{})
}

// gone notes that a guard has ended without being asked.
func (g *guards) gone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = true
	if g.ending != nil {
		close(g.ending)
		g.ending = nil
	}
}

// close ends all guards, the last one first. False: what one of them holds does not end.
func (g *guards) close() (ended bool) {
	g.mu.Lock()
	all := g.all
	g.mu.Unlock()
	ended = true
	for _, guard := range slices.Backward(all) {
		if err := guard.Close(); err != nil && !errors.Is(err, sandbox.ErrGone) {
			g.log.Error("end the guard", "err", err)
			ended = false
		}
	}
	if ended { // else its events may never end
		g.watching.Wait()
	}
	return ended
}

// hear turns what a guard says into events of the machine: an attempt is over when its process has exited and nothing
// of it is left.
func (p *Process) hear(_ *sandbox.Guard, l *ledger, event sandbox.Event) {
	switch e := event.(type) {
	case sandbox.Started:
		l.started[e.Attempt] = time.Now()
	case sandbox.Lingers:
		p.work.Go(func() { p.startEnded(e.Attempt, e.Left) })
	case sandbox.Adopted: // Adopt has said so
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
		p.Log.Warn("log bytes lost", "stream", e.Stream, "bytes", e.Bytes, "err", e.Err)
	case sandbox.DeadMan:
		p.Log.Error("this agent could not say in time that it is in touch with the registry: its guard has ended the " +
			"process")
		p.Fence.TimerFired()
		p.guards.timerFired()
	case sandbox.Gone:
		p.Log.Error("the guard is gone", "err", e.Err, "left", e.Left)
		p.guards.gone()
	}
}

// Guard names the guard for whoever must clear up after this agent; nil before there is one.
func (p *Process) Guard() *registry.ProcessRef {
	g := p.guards.now()
	if g == nil {
		return nil
	}
	return &registry.ProcessRef{Pid: g.PID(), Start: g.StartTicks()}
}

// Holds tells that a process of this host is one of the instance's.
func (p *Process) Holds(pid int) bool { return p.guards.now().Holds(pid) }
