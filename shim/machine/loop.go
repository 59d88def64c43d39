package machine

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/exit"
)

// room does the effects of one kind. What an effect led to is the event that Do returns, or comes later by Tell.
type room interface {
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
	rooms Rooms
	log   *slog.Logger
	trace func(Transition)
	hide  func(string) string

	events chan Event
	done   chan struct{}
	state  atomic.Pointer[State]
	work   sync.WaitGroup
}

// Rooms are what an Agent works with.
type Rooms struct {
	// Gang writes to the registry: a newer effect cancels the one that is still being tried.
	Gang room
	// Stager prepares the container: the plan, its files, its ports, the parked guard.
	Stager room
	// Engine acts on the process. That the process is gone comes later, by Tell.
	Engine room
	// Checkpoints commits steps to the registry, one after the other, beside what Gang writes. Of the steps that wait
	// only those are committed that the registry would go on to name.
	Checkpoints room

	Logger *slog.Logger
	Trace  func(Transition) // may be nil
	// Heard is called with each event and the states around it, and must not wait. It may be nil.
	Heard func(before State, e Event, after State)
	// Hide takes secret values out of the causes of events, which go to status, logs and the registry. It may be nil.
	Hide func(string) string
}

// NewAgent makes an agent; Use gives it its rooms, which usually need its Tell.
func NewAgent() *Agent {
	a := &Agent{events: make(chan Event, 256), done: make(chan struct{}), trace: func(Transition) {}}
	a.hide = func(text string) string { return text }
	s := New()
	a.state.Store(&s)
	return a
}

// Use sets the rooms; call it once, before Run.
func (a *Agent) Use(r Rooms) {
	a.rooms, a.log = r, r.Logger
	if r.Trace != nil {
		a.trace = r.Trace
	}
	if r.Hide != nil {
		a.hide = r.Hide
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

// Run lives through the whole machine and returns its final state. A cancelled context stops nothing: a Term does, and
// lets everything that was asked for end in order.
func (a *Agent) Run(ctx context.Context) State {
	effects, cancel := context.WithCancel(context.WithoutCancel(ctx))
	queues := map[string]func(Effect, State){
		"gang":        a.queue(effects, true, a.rooms.Gang),
		"stager":      a.queue(effects, false, a.rooms.Stager),
		"engine":      a.queue(effects, false, a.rooms.Engine),
		"checkpoints": a.queue(effects, false, a.rooms.Checkpoints),
		"loop":        func(w Effect, _ State) { a.arm(effects, w) },
	}
	s := a.State()
	a.Tell(Event{Kind: boot})
	for e := range a.events {
		if e.At.IsZero() {
			e.At = time.Now()
		}
		if e.Kind == Gone {
			e.Roll = rand.Float64()
		}
		e.Cause = a.hide(e.Cause)
		if e.Exit != nil {
			x := *e.Exit
			x.Message, x.LastOutput = a.hide(x.Message), a.hide(x.LastOutput)
			e.Exit = &x
		}
		before := s
		var wanted []Effect
		s, wanted = Step(s, e)
		shown := s // readers keep it while s changes
		a.state.Store(&shown)
		a.note(before, s, e)
		if a.rooms.Heard != nil {
			a.rooms.Heard(before, e, s)
		}
		for _, w := range wanted {
			queues[w.Kind.Room()](w, s)
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

// queue starts the worker of a room: orders run one after the other; where newer ones take precedence the order under
// way is cancelled first, and its event dropped. A start is cancelled by the order to end what it starts, and its event
// counts: it says whether there is a process. The loop never waits for a room, however many orders the room is behind.
func (a *Agent) queue(ctx context.Context, preempt bool, room room) func(Effect, State) {
	type order struct {
		effect Effect
		state  State
		ctx    context.Context
		stop   context.CancelFunc
	}
	var (
		mu      sync.Mutex
		waiting []order
		more    = make(chan struct{}, 1)
		stop    = context.CancelFunc(func() {})
	)
	next := func() (o order, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(waiting) == 0 {
			return o, false
		}
		o, waiting = waiting[0], waiting[1:]
		return o, true
	}
	a.work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-more:
			}
			for o, ok := next(); ok; o, ok = next() {
				if ctx.Err() != nil {
					return
				}
				if e, ok := room.Do(o.ctx, o.effect, o.state); ok && (o.ctx.Err() == nil || !preempt) {
					a.Tell(e)
				}
				o.stop() // else it would be a child of ctx until the end
			}
		}
	})
	return func(e Effect, s State) {
		if preempt || e.Kind == DoTerminate || e.Kind == DoKill {
			stop()
		}
		var each context.Context
		each, stop = context.WithCancel(ctx)
		mu.Lock()
		waiting = append(waiting, order{e, s, each, stop})
		if e.Kind == DoCommit && len(waiting) > conductor.NewestNamed { // the registry would forget it
			waiting[0].stop()
			waiting = waiting[1:]
		}
		mu.Unlock()
		select {
		case more <- struct{}{}:
		default:
		}
	}
}

func (a *Agent) arm(ctx context.Context, w Effect) {
	a.work.Go(func() {
		timer := time.NewTimer(w.After)
		defer timer.Stop()
		select {
		case <-timer.C:
			a.Tell(Event{Kind: fired, Attempt: w.Attempt, Timer: w.Timer})
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
		if e.Code == exit.Forbidden {
			a.log.Warn("registry refuses the token, process continues", "since", s.AwaySince, "cause", e.Cause)
			return
		}
		a.log.Warn("registry unreachable, process continues", "since", s.AwaySince, "cause", e.Cause)
	case CutOff:
		a.log.Error("cut off from the registry: the process must stop", "phase", s.Phase,
			"cause", e.Cause)
	case Contact:
		a.log.Info("contact with the registry restored", "phase", s.Phase)
	case DataLost:
		if s.Phase == Running || s.Phase == Stopping {
			a.log.Warn("registry lost its data, process continues", "cause", e.Cause)
			return
		}
		a.log.Warn("registry lost its data, agent waits", "phase", s.Phase, "cause", e.Cause)
	case Back:
		if before.LostData != "" {
			a.log.Info("registry has the app's data again")
		} else {
			a.log.Info("registry answers again", "away_since", before.AwaySince)
		}
	case Conducting:
		a.log.Info("conducting", "on", e.On)
	case Extend:
		a.log.Info("container kept longer", "until", s.HoldUntil)
	case Held:
		a.log.Info("standing by", "cause", e.Cause)
	case Progressed:
		a.log.Info("checkpoint found", "step", e.Step)
	case boot, Joined, Refused, Staged, StageFailed, Directed, Acked, Overtaken, Published, Sealed, Mismatch, Started,
		Up,
		Gone, Rebound, Release, Reported, Left, fired, Term, Taken, Denied:
		a.log.Debug("event", "event", e.Kind, "phase", s.Phase, "attempt", e.Attempt)
	}
}
