package conductor_test

import (
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// paced are two workers of the gang scope that restart as often as they like.
func paced() conductor.Facts {
	f := factsOf(component("worker", "worker", 2, registry.ScopeGang))
	f.GangBudget = conductor.BudgetRule{
		Max: -1, Window: 5 * time.Minute, Backoff: conductor.Backoff{Min: time.Second, Max: 10 * time.Second},
	}
	return f
}

// reformed brings the waiting generation to its start, and tells how long it waited for its pause.
func reformed(g *gang) time.Duration {
	g.t.Helper()
	g.want(registry.ActWait, g.dir.Gen)
	began := g.now
	for name := range map[string]bool{"worker-0": true, "worker-1": true} {
		g.ack(name)
	}
	g.settle()
	for g.dir.Act == registry.ActWait {
		if g.now.Sub(began) > time.Minute {
			g.t.Fatalf("generation %d did not start within a minute", g.dir.Gen)
		}
		g.pass(100 * time.Millisecond)
	}
	return g.now.Sub(began)
}

// TestGangBackoff: the first restart within a window is immediate, each further one waits, twice as long as the last.
func TestGangBackoff(t *testing.T) {
	for _, tt := range []struct {
		name string
		hurt func(*gang)
	}{
		{"its process fails", func(g *gang) { g.fail("worker-1", 1) }},
		{"the launcher replaces it", func(g *gang) {
			g.report("worker-1", registry.PhaseFailed, registry.MemberExit{Gen: g.dir.Gen, Class: registry.ClassLauncher})
		}},
		{"its row is another's", func(g *gang) {
			g.report("worker-1", registry.PhaseFailed, registry.MemberExit{Gen: g.dir.Gen, Class: registry.ClassMismatch})
		}},
		{"all agents are relaunched", func(g *gang) { g.join("worker-1", g.dir.By+"x", "h1") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := running(t, paced())
			for n, want := range []time.Duration{0, 1, 2, 4, 8, 10, 10} {
				want *= time.Second
				g.newConductor("c" + string(rune('2'+n))) // the pause does not depend on who conducts
				g.settle()
				tt.hurt(g)
				g.settle()
				if got := g.dir.Pause(); got != want {
					t.Fatalf("restart %d: %q with a pause of %s, want %s", n+1, g.dir.Why, got, want)
				}
				if got := reformed(g); got < want || got > want+time.Second {
					t.Fatalf("restart %d started after %s, want %s", n+1, got, want)
				}
			}
			g.pass(5 * time.Minute)
			g.settle()
			tt.hurt(g)
			g.settle()
			if got := g.dir.Pause(); got != 0 {
				t.Errorf("after a window without a restart: pause %s, want none", got)
			}
		})
	}
}

// TestBackoffLeavesRetriesAlone: a restart by muster.retry has pauses of its own, and begins a new row.
func TestBackoffLeavesRetriesAlone(t *testing.T) {
	f := paced()
	f.GangBudget.Max, f.Retry = 1, conductor.RetryForever
	g := running(t, f)
	g.fail("worker-1", 1)
	g.settle()
	reformed(g)
	g.fail("worker-1", 1)
	g.settle()
	if g.dir.Retries.Used != 1 || g.dir.Pause() != 0 {
		t.Fatalf("first retry: %+v with a pause of %s, want none", g.dir.Retries, g.dir.Pause())
	}
	reformed(g)
	g.fail("worker-1", 1)
	g.settle()
	if g.dir.Retries.Used != 1 || g.dir.Pause() != 0 {
		t.Errorf("first restart after the retry: %+v with a pause of %s, want none", g.dir.Retries, g.dir.Pause())
	}
}
