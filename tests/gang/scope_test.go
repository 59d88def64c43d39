package gang

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
)

var gangScoped = map[string]string{"muster.restart": "gang"}

// In the gang scope one failure is everybody's: all stop and start again as the next generation.
func gangScope(t *testing.T, at place) {
	g := newGang(t, at, workers(3, gangScoped))
	cast := g.begin()
	cast["worker-0"].do(cue{Do: "trap"})
	cast["worker-2"].do(cue{Do: "save", N: 40})
	cast["worker-1"].exit(5)
	cast["worker-0"].hearsTerm()
	cast["worker-0"].exit(0) // a result of the old generation: it does not count
	cast["worker-2"].gone()

	for name, a := range g.cast(g.def.instances()...) {
		if a.generation() != 2 || a.attempt() != 2 {
			t.Errorf("%s: generation %d, attempt %d, want 2, 2", name, a.generation(), a.attempt())
		}
		if a.port() != cast[name].port() {
			t.Errorf("%s: port %d, want %d again", name, a.port(), cast[name].port())
		}
		if got, want := a.env("MUSTER_CHECKPOINT"), filepath.Join(g.work, "checkpoint", "ckpt-40"); got != want {
			t.Errorf("%s: checkpoint %q, want %q", name, got, want)
		}
		a.exit(0)
	}
	e := g.succeeds()
	if g.run != nil && e.result.Generations != 2 {
		t.Errorf("result: %d generations, want 2", e.result.Generations)
	}
	if at.consul != nil {
		if d, _ := g.directive(); d.Gen != 2 || d.Budget.Used != 1 {
			t.Errorf("directive: generation %d, budget used %d, want 2, 1", d.Gen, d.Budget.Used)
		}
	}
}

func gangBudgetSpent(t *testing.T, at place) {
	g := newGang(t, at, workers(2, with(gangScoped, "muster.restart.budget", "1")))
	g.begin()["worker-1"].exit(5)
	g.cast("worker-0", "worker-1")["worker-0"].exit(6)
	e := g.fails(registry.ClassApp, "worker-0", 6, 93)
	if !strings.Contains(e.verdict.Cause, "after 1 restart") {
		t.Errorf("cause %q, want the restart in it", e.verdict.Cause)
	}
}

// Where nothing restarts, the first failure is the verdict.
func neverScope(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart": "never"}))
	cast := g.begin()
	cast["worker-0"].kill()
	g.fails(registry.ClassApp, "worker-0", 128+int(syscall.SIGKILL), 93)
	cast["worker-1"].gone()
	if n := g.stage.starts("worker-0"); n != 1 {
		t.Errorf("worker-0 was started %d times, want once", n)
	}
}
