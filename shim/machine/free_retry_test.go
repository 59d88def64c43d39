package machine

import (
	"testing"
	"time"

	"github.com/muster-agent/muster/registry/conductor"
)

// A program that takes longer to find its port taken than the longest backoff has not led a healthy life.
func TestFreeRetriesEndAlsoWithAShortBackoff(t *testing.T) {
	now := time.Unix(1e9, 0)
	code := 1
	s := New()
	s.Phase, s.Attempt, s.Gen, s.Proc = Running, 1, 1, 1
	s.Policy = Policy{Scope: "instance", Rule: conductor.BudgetRule{Backoff: conductor.Backoff{Min: 50 * time.Millisecond, Max: 50 * time.Millisecond}}}
	for i := range 3 {
		s.Begun = now
		now = now.Add(2 * time.Second)
		if s, _ = Step(s, Event{Kind: Gone, Attempt: s.Attempt, At: now, Exit: &Exit{Code: &code, Free: true}}); s.Phase != Backoff {
			t.Fatalf("retry %d: %s, want %s", i+1, s.Phase, Backoff)
		}
		s.Phase, s.Proc, s.Bound = Running, 1, true
	}
	s.Begun = now
	now = now.Add(2 * time.Second)
	if s, _ = Step(s, Event{Kind: Gone, Attempt: s.Attempt, At: now, Exit: &Exit{Code: &code, Free: true}}); s.Phase != Finishing {
		t.Errorf("after three free retries and without a budget: %s, want %s", s.Phase, Finishing)
	}
}

// TestWhyOfAFreeRetry: what is not charged is not counted.
func TestWhyOfAFreeRetry(t *testing.T) {
	s := State{Phase: Backoff}
	s.Exit = &Exit{Code: new(1), Message: "address already in use", Free: true}
	if got, want := s.Why(), "exited with 1: address already in use; restarting"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
