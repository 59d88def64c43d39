package machine

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// scripted stands for all rooms: it answers an effect with the event written down for it, and
// remembers what it was asked.
type scripted struct {
	mu      sync.Mutex
	asked   []effectKind
	answers map[effectKind]func(ctx context.Context, e Effect) (Event, bool)
}

func (r *scripted) Do(ctx context.Context, e Effect, _ State) (Event, bool) {
	r.mu.Lock()
	r.asked = append(r.asked, e.Kind)
	answer := r.answers[e.Kind]
	r.mu.Unlock()
	if answer == nil {
		return Event{}, false
	}
	return answer(ctx, e)
}

func says(e Event) func(context.Context, Effect) (Event, bool) {
	return func(_ context.Context, f Effect) (Event, bool) {
		e.Attempt = f.Attempt
		return e, true
	}
}

func newScripted(policy Policy) *scripted {
	return &scripted{answers: map[effectKind]func(context.Context, Effect) (Event, bool){
		DoJoin: says(Event{
			Kind: Joined, Joined: &Join{Instance: registry.Instance{Component: "worker", Index: 1}}, Directive: directive("wait", 1),
		}),
		DoStage:       says(Event{Kind: Staged, Policy: &policy}),
		DoAcknowledge: func(_ context.Context, e Effect) (Event, bool) { return Event{Kind: Acked, Gen: e.Gen}, true },
		DoReadRoster:  func(_ context.Context, e Effect) (Event, bool) { return Event{Kind: Sealed, Gen: e.Gen}, true },
		DoStart:       says(Event{Kind: Started}),
		DoRebind:      says(Event{Kind: Rebound, On: true}),
		DoReport:      says(Event{Kind: Reported}),
		DoLeave:       says(Event{Kind: Left}),
	}}
}

func live(t *testing.T, room *scripted) (*Agent, chan State) {
	t.Helper()
	a := NewAgent()
	a.Use(Rooms{Gang: room, Stager: room, Engine: room, Checkpoints: room, Logger: slog.New(slog.DiscardHandler)})
	final := make(chan State, 1)
	go func() { final <- a.Run(t.Context()) }()
	synctest.Wait()
	return a, final
}

func (r *scripted) count(kind effectKind) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.asked {
		if k == kind {
			n++
		}
	}
	return n
}

var quick = Policy{Scope: "instance", Grace: 10 * time.Second, Barrier: time.Hour, Rule: conductor.BudgetRule{Max: 5, Window: time.Hour, Backoff: conductor.Backoff{Min: time.Second, Max: time.Minute}}}

func TestLoopRestartsAfterItsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newScripted(quick)
		a, final := live(t, room)
		a.Tell(Event{Kind: Directed, Directive: directive("run", 1)})
		synctest.Wait()
		if got := a.State(); got.Phase != Running || got.Attempt != 1 {
			t.Fatalf("got %s, attempt %d, want running, 1", got.Phase, got.Attempt)
		}
		begun := time.Now()
		a.Tell(Event{Kind: Gone, Attempt: 1, Exit: &Exit{Signal: 9}})
		synctest.Wait()
		if got := a.State(); got.Phase != Running || got.Attempt != 2 || time.Since(begun) != 0 {
			t.Fatalf("got %s, attempt %d after %s, want running, 2, at once: it is the first restart", got.Phase, got.Attempt, time.Since(begun))
		}
		a.Tell(Event{Kind: Gone, Attempt: 2, Exit: &Exit{Signal: 9}})
		synctest.Wait()
		if got := a.State().Phase; got != Backoff {
			t.Fatalf("got %s, want backoff", got)
		}
		for a.State().Phase == Backoff {
			time.Sleep(time.Millisecond) // virtual
			synctest.Wait()
		}
		if waited := time.Since(begun); waited < 750*time.Millisecond || waited > 1250*time.Millisecond {
			t.Errorf("restarted after %s, want 1 s with a quarter of jitter", waited)
		}
		code := 0
		a.Tell(Event{Kind: Gone, Attempt: 3, Exit: &Exit{Code: &code}})
		stop := directive("stop", 1)
		stop.Verdict = &registry.Verdict{Outcome: registry.Succeeded}
		a.Tell(Event{Kind: Directed, Directive: stop})
		if s := <-final; s.Phase != Done || s.ExitCode() != 0 || s.Attempt != 3 {
			t.Errorf("got %s, code %d, attempt %d, want done, 0, 3", s.Phase, s.ExitCode(), s.Attempt)
		}
	})
}

func TestLoopKillsWhenTheGraceIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newScripted(quick)
		killed := make(chan time.Time, 1)
		room.answers[DoKill] = func(_ context.Context, e Effect) (Event, bool) {
			killed <- time.Now()
			return Event{Kind: Gone, Attempt: e.Attempt, Exit: &Exit{Signal: 9}}, true
		}
		a, final := live(t, room)
		a.Tell(Event{Kind: Directed, Directive: directive("run", 1)})
		synctest.Wait()
		told := time.Now()
		a.Tell(Event{Kind: Term, Signal: 15})
		if took := (<-killed).Sub(told); took != quick.Grace {
			t.Errorf("killed after %s, want the grace of %s", took, quick.Grace)
		}
		if s := <-final; s.ExitCode() != 143 {
			t.Errorf("got code %d, want 143", s.ExitCode())
		}
	})
}

// TestLoopNewerGangEffectCancelsTheOlder: an acknowledgement that hangs while the registry is away
// must not keep a leaving agent.
func TestLoopNewerGangEffectCancelsTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newScripted(quick)
		room.answers[DoAcknowledge] = func(ctx context.Context, _ Effect) (Event, bool) {
			<-ctx.Done()
			return Event{}, false
		}
		a, final := live(t, room)
		a.Tell(Event{Kind: Term, Signal: 15})
		if s := <-final; s.Phase != Done || room.count(DoLeave) != 1 {
			t.Errorf("got %s after %v, want done by leaving once", s.Phase, room.asked)
		}
	})
}

// TestLoopCommitsBesideTheGang: commits that hang while the registry is away hold up neither the loop nor other writes.
// Then the newest steps are committed, and not what nobody would resume from any more.
func TestLoopCommitsBesideTheGang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newScripted(quick)
		back := make(chan struct{})
		var committed []int64
		room.answers[DoCommit] = func(_ context.Context, e Effect) (Event, bool) {
			<-back
			committed = append(committed, e.Step)
			return Event{}, false
		}
		a, final := live(t, room)
		a.Tell(Event{Kind: Acked, Gen: 1})
		const steps = 1000
		for step := range int64(steps) {
			a.Tell(Event{Kind: Progressed, Step: step + 1})
		}
		synctest.Wait()
		if got := a.State().Step; got != steps {
			t.Fatalf("got step %d, want %d", got, steps)
		}
		close(back)
		synctest.Wait()
		want := []int64{996, 997, 998, 999, 1000} // after the one that was under way
		if len(committed) != 1+len(want) || !slices.Equal(committed[1:], want) {
			t.Errorf("got commits of %v, want one and %v", committed, want)
		}
		a.Tell(Event{Kind: Term, Signal: 15})
		<-final
	})
}

func TestLoopTracesEachTransitionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newScripted(quick)
		a := NewAgent()
		var trace []Phase
		a.Use(Rooms{
			Gang: room, Stager: room, Engine: room, Checkpoints: room, Logger: slog.New(slog.DiscardHandler),
			Trace: func(tr Transition) { trace = append(trace, tr.To) },
		})
		final := make(chan State, 1)
		go func() { final <- a.Run(t.Context()) }()
		synctest.Wait()
		a.Tell(Event{Kind: Away})
		a.Tell(Event{Kind: Term, Signal: 2})
		<-final
		if diff := cmp.Diff([]Phase{Claiming, Staging, Installed, Waiting, Leaving, Done}, trace); diff != "" {
			t.Error(diff)
		}
	})
}

// TestLoopCallsAStartOff: a start that hangs, on a store that does not answer, is cancelled when the process is to end, and
// what comes of it counts.
func TestLoopCallsAStartOff(t *testing.T) {
	for name, tell := range map[string][]Event{
		"terminate": {{Kind: Term, Signal: 15}},
		"kill":      {{Kind: Taken}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				room := newScripted(quick)
				room.answers[DoStart] = func(ctx context.Context, e Effect) (Event, bool) {
					<-ctx.Done()
					return Event{Kind: Gone, Attempt: e.Attempt, Exit: &Exit{Message: "called off"}}, true
				}
				a, final := live(t, room)
				a.Tell(Event{Kind: Directed, Directive: directive("run", 1)})
				synctest.Wait()
				for _, e := range tell {
					a.Tell(e)
				}
				begun := time.Now()
				synctest.Wait()
				if s := a.State(); !s.Phase.Final() || time.Since(begun) != 0 {
					t.Errorf("%s after %s, want the end at once", s.Phase, time.Since(begun))
				}
				<-final
			})
		})
	}
}
