package machine

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Gang does the effects that write to the registry, one at a time: a newer effect cancels the one
// that still tries.
type Gang interface {
	Do(ctx context.Context, e Effect, s State) (Event, bool)
}

// Stager prepares the container: the plan, its files, its ports, the parked guard.
type Stager interface {
	Do(ctx context.Context, e Effect, s State) (Event, bool)
}

// Engine acts on the process, in the order of asking. That it is gone comes later, by Tell.
type Engine interface {
	Do(ctx context.Context, e Effect, s State) (Event, bool)
}

// Transition is one line of the trace.
type Transition struct {
	Event Event
	From  Phase
	To    Phase
	State State // after it
}

// Agent is the loop around Step. Its rooms report back by Tell; readers take State.
type Agent struct {
	gang   Gang
	stager Stager
	engine Engine
	log    *slog.Logger
	trace  func(Transition)

	events chan Event
	done   chan struct{}
	state  atomic.Pointer[State]
	work   sync.WaitGroup
}

// Rooms are what an Agent works with. Trace may be nil.
type Rooms struct {
	Gang   Gang
	Stager Stager
	Engine Engine
	Logger *slog.Logger
	Trace  func(Transition)
}

// NewAgent makes an agent; Use gives it its rooms, which usually need its Tell.
func NewAgent() *Agent {
	a := &Agent{events: make(chan Event, 256), done: make(chan struct{}), trace: func(Transition) {}}
	s := New()
	a.state.Store(&s)
	return a
}

// Use sets the rooms; call it once, before Run.
func (a *Agent) Use(r Rooms) {
	a.gang, a.stager, a.engine, a.log = r.Gang, r.Stager, r.Engine, r.Logger
	if r.Trace != nil {
		a.trace = r.Trace
	}
}

// Tell hands the loop an event; after the end of the loop it does nothing.
func (a *Agent) Tell(e Event) {
	select {
	case a.events <- e:
	case <-a.done:
	}
}

// State is the newest state, for readers.
func (a *Agent) State() State { return *a.state.Load() }

// Run lives through the whole machine and returns its final state. A cancelled context is a Term:
// everything that was asked for still ends in order.
func (a *Agent) Run(ctx context.Context) State {
	effects, cancel := context.WithCancel(context.WithoutCancel(ctx))
	gang := a.queue(effects, true, a.gang.Do)
	stager := a.queue(effects, false, a.stager.Do)
	engine := a.queue(effects, false, a.engine.Do)
	a.work.Go(func() {
		select {
		case <-ctx.Done():
			a.Tell(Event{Kind: Term, Signal: 15})
		case <-a.done:
		}
	})
	s := a.State()
	a.Tell(Event{Kind: Boot})
	for e := range a.events {
		if e.At.IsZero() {
			e.At = time.Now()
		}
		if e.Kind == Gone {
			e.Roll = rand.Float64()
		}
		before := s
		var wanted []Effect
		s, wanted = Step(s, e)
		shown := s // readers keep theirs while this one goes on
		a.state.Store(&shown)
		a.note(before, s, e)
		for _, w := range wanted {
			switch w.Kind.Room() {
			case "gang":
				gang(w, s)
			case "stager":
				stager(w, s)
			case "engine":
				engine(w, s)
			default:
				a.arm(effects, w)
			}
		}
		if e.Kind == Progressed && before.Step < s.Step && s.Gen > 0 {
			commit := Effect{Kind: DoCommit, Gen: s.Gen, Attempt: s.Attempt, Step: s.Step}
			a.work.Go(func() { a.gang.Do(effects, commit, shown) })
		}
		if s.Phase.Final() {
			break
		}
	}
	close(a.done)
	cancel()
	a.work.Wait()
	return s
}

// queue starts a room's worker: orders run one after the other; where newer ones take precedence
// the order under way is cancelled first.
func (a *Agent) queue(ctx context.Context, preempt bool, do func(context.Context, Effect, State) (Event, bool)) func(Effect, State) {
	type order struct {
		effect Effect
		state  State
		ctx    context.Context
		stop   context.CancelFunc
	}
	orders := make(chan order, 64)
	stop := context.CancelFunc(func() {})
	a.work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case o := <-orders:
				if e, ok := do(o.ctx, o.effect, o.state); ok && (o.ctx.Err() == nil || !preempt) {
					a.Tell(e)
				}
				o.stop() // else it would be a child of ctx until the end
			}
		}
	})
	return func(e Effect, s State) {
		if preempt {
			stop()
		}
		var each context.Context
		each, stop = context.WithCancel(ctx)
		orders <- order{e, s, each, stop}
	}
}

func (a *Agent) arm(ctx context.Context, w Effect) {
	a.work.Go(func() {
		timer := time.NewTimer(w.After)
		defer timer.Stop()
		select {
		case <-timer.C:
			a.Tell(Event{Kind: Fired, Attempt: w.Attempt, Timer: w.Timer})
		case <-ctx.Done():
		}
	})
}

// note writes the one line of a transition, and a line for what changes no phase but matters.
func (a *Agent) note(before, s State, e Event) {
	if before.Phase != s.Phase {
		a.trace(Transition{Event: e, From: before.Phase, To: s.Phase, State: s})
		attrs := []any{"from", before.Phase, "event", e.Kind, "to", s.Phase, "attempt", s.Attempt, "generation", s.Gen}
		if e.Kind == Gone {
			attrs = append(attrs, "exit", e.Exit.Why())
		}
		if e.Kind == Directed && e.Directive.Why != "" {
			attrs = append(attrs, "why", e.Directive.Why)
		}
		if e.Cause != "" {
			attrs = append(attrs, "cause", e.Cause)
		}
		a.log.Info("transition", attrs...)
		return
	}
	switch e.Kind {
	case Away:
		a.log.Warn("registry unreachable, everything goes on", "since", s.AwaySince, "cause", e.Cause)
	case CutOff:
		a.log.Error("cut off from the registry, and the peers are not: nothing may run here", "phase", s.Phase, "cause", e.Cause)
	case Contact:
		a.log.Info("the registry is heard again", "phase", s.Phase)
	case DataLost:
		a.log.Warn("registry lost its data, the process goes on", "cause", e.Cause)
	case Back:
		a.log.Info("registry answers again", "away_since", before.AwaySince)
	case Conducting:
		a.log.Info("conducting", "on", e.On)
	case Held:
		a.log.Info("standing by", "cause", e.Cause)
	case Progressed:
		a.log.Info("checkpoint", "step", e.Step)
	case Boot, Joined, Refused, Staged, StageFailed, Directed, Acked, Overtaken, Published, Sealed, Mismatch, Started, Up,
		Gone, Rebound, Reported, Left, Fired, Term, Taken, Denied:
		a.log.Debug("event", "event", e.Kind, "phase", s.Phase, "attempt", e.Attempt)
	}
}
