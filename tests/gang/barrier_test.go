package gang

import (
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// shortBarrier is long enough for agents on a busy machine to get ready, and no longer.
var shortBarrier = map[string]string{"muster.barrier.timeout": "15s"}

// A gang that does not come together ends with the names of those who are missing.
func barrierTimeout(t *testing.T, at place) {
	g := newGang(t, at, workers(3, shortBarrier))
	g.launch("worker-0")
	g.launch("worker-2")
	g.timesOut("1 of 3 instances were not ready within 15 s: worker-1 (never joined)", "worker-1")
	g.agentSays("worker-0", `missing=worker-1 count=1`)
	for _, name := range g.def.instances() {
		if n := g.stage.starts(name); n != 0 {
			t.Errorf("%s was started %d times, want never", name, n)
		}
	}
}

// A replacement is waited for as long as a gang is.
func neverReplaced(t *testing.T, at place) {
	g := newGang(t, at, workers(3, shortBarrier))
	cast := g.begin()
	g.agents["worker-1"].signal(syscall.SIGTERM)
	if code := g.agents["worker-1"].wait(); code != 143 {
		t.Errorf("the agent that was told to go ended with %d, want 143", code)
	}
	delete(g.agents, "worker-1")
	g.timesOut("worker-1 was not replaced within 15 s", "worker-1")
	for _, a := range cast {
		a.gone()
	}
}

// timesOut waits for the end and expects the verdict timeout with that cause.
func (g *gang) timesOut(cause, first string) {
	g.t.Helper()
	for name, p := range g.agents {
		if code := p.wait(); code != 76 {
			g.t.Errorf("agent of %s ended with %d, want 76", name, code)
		}
	}
	d, _ := g.directive()
	v := d.Verdict
	if v == nil || v.Class != registry.ClassTimeout || v.First != first || !strings.Contains(v.Cause, cause) {
		g.t.Errorf("verdict %+v, want timeout of %s: %s", v, first, cause)
	}
}
