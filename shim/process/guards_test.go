package process

import (
	"context"
	"log/slog"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
)

// The cgroup of a new guard has the plan's limit: what the one before it had grown to is raised anew.
func TestEachGuardHasThePlansLimit(t *testing.T) {
	p := New(t.Context(), Config{
		Plan: plan.Plan{Limits: plan.Limits{MemoryMB: 100}},
		Park: func(context.Context) (*sandbox.Guard, error) { return nil, nil }, //nolint:nilnil // nobody asks it
	})
	p.memory = 150
	if _, err := p.guards.park(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.Report().MemoryMB; got != 100 {
		t.Errorf("%d MB are in force, want 100", got)
	}
}

// Close waits for the side processes of the last attempt.
func TestCloseAwaitsTheSideProcesses(t *testing.T) {
	p := New(t.Context(), Config{Log: slog.New(slog.DiscardHandler)})
	g := &sideGroup{over: make(chan struct{}), leave: make(chan struct{})}
	p.sides = g
	ended := false
	g.lives.Go(func() { <-g.leave; ended = true })
	if !p.Close() || !ended {
		t.Error("a side process is still looked after")
	}
}
