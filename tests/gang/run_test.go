package gang

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// Ctrl-C of muster run stops the gang in grace.
func ctrlC(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	for _, a := range cast {
		a.do(cue{Do: "trap"})
	}
	g.run.signal(syscall.SIGINT)
	for _, a := range cast {
		a.hearsTerm()
		a.exit(0)
	}
	g.stopped(130)
	if !strings.Contains(g.run.err(), "Ctrl-C again kills") {
		t.Error("muster run did not say what Ctrl-C does")
	}
}

// shownInterrupted expects that muster ps and status say so of a run without agents and without a verdict.
func (g *gang) shownInterrupted() {
	g.t.Helper()
	for _, verb := range []string{"ps", "status"} {
		if v := g.view(verb); v.Phase != "interrupted" || v.Outcome == nil || *v.Outcome != "interrupted" {
			g.t.Errorf("muster %s: %+v, want interrupted", verb, v)
		}
	}
}

// The second one ends all grace.
func runKilledBySecond(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	for _, a := range cast {
		a.do(cue{Do: "trap"})
	}
	g.run.signal(syscall.SIGINT)
	for _, a := range cast {
		a.hearsTerm()
		a.stays()
	}
	for _, a := range cast {
		a.goneBy(func() { g.run.again(syscall.SIGINT) })
	}
	if e := g.end(); e.run != 130 || e.result.Outcome != "stopped" {
		t.Errorf("muster run: %s, exit code %d, want stopped, 130", e.result.Outcome, e.run)
	}
}

// TERM of muster run is the resource manager's: no verdict, and the same command goes on.
func runTerminated(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	cast["worker-0"].do(cue{Do: "save", N: 9})
	g.run.signal(syscall.SIGTERM)
	for _, a := range cast {
		a.gone()
	}
	if e := g.end(); e.run != 143 || e.result.Outcome != "interrupted" || e.verdict != nil {
		t.Errorf("muster run: %s, exit code %d, verdict %v, want interrupted, 143, none", e.result.Outcome, e.run, e.verdict)
	}
	g.shownInterrupted()
	for name, a := range g.takenUp() {
		if got, want := a.env("MUSTER_CHECKPOINT"), filepath.Join(g.work, "checkpoint", "ckpt-9"); got != want {
			t.Errorf("%s: checkpoint %q, want %q", name, got, want)
		}
		a.exit(0)
	}
	g.succeeds()
}

// muster run is killed: its agents hear of it by their lifelines and stop in grace.
func runKilled(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	agents := map[string]int{}
	for name, a := range cast {
		a.do(cue{Do: "trap"})
		agents[name] = g.agentPid(name)
	}
	g.run.kill()
	for name, a := range cast {
		a.hearsTerm()
		a.exit(0)
		await(t, "the end of the agent of "+name, func() bool { return !lives(agents[name]) })
		var x exitFile
		g.readJSON(g.log(name, "exit.json"), &x)
		if x.AgentCode != 143 || x.Verdict != nil {
			t.Errorf("agent of %s ended with %d, verdict %v, want 143 and none", name, x.AgentCode, x.Verdict)
		}
	}
	g.shownInterrupted()
	for name, a := range g.takenUp() { // what it left holds up nobody
		if a.port() != cast[name].port() {
			t.Logf("%s has port %d now, %d before", name, a.port(), cast[name].port())
		}
		a.exit(0)
	}
	g.succeeds()
}

// muster run launches an agent again that was killed, as a resource manager would.
func runRelaunches(t *testing.T, at place) {
	g := newGang(t, at, training(2, nil))
	cast := g.begin()
	kill(t, g.agentPid("worker-1"), syscall.SIGKILL)
	cast["worker-1"].gone()
	again := g.stage.next("worker-1")
	if again.attempt() != 2 || again.generation() != 1 || again.port() != cast["worker-1"].port() {
		t.Errorf("replacement: attempt %d, generation %d, port %d, want 2, 1, %d", again.attempt(), again.generation(), again.port(), cast["worker-1"].port())
	}
	g.unmoved(cast, "worker-1")
	again.exit(0)
	cast["worker-0"].exit(0)
	if e := g.succeeds(); e.result.Restarts != 1 {
		t.Errorf("result: %d restarts, want 1", e.result.Restarts)
	}
}

// Two runs of one name at a time are a mistake.
func runTwice(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	cast := g.begin()
	second := start(t, "second muster run", g.environment(), g.runArgs()...)
	if code := second.wait(); code != 75 {
		t.Errorf("the second ended with %d, want 75", code)
	}
	if !strings.Contains(second.err(), g.app) {
		t.Errorf("the second said %q, want %s in it", second.err(), g.app)
	}
	cast["worker-0"].stays()
	cast["worker-0"].exit(0)
	g.succeeds()
}

// A name may be used again after the end.
func runAgain(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	g.begin()["worker-0"].exit(0)
	one := g.succeeds()
	again := g.begin()["worker-0"]
	if again.attempt() != 1 {
		t.Errorf("attempt %d in the new run, want 1", again.attempt())
	}
	again.exit(0)
	if two := g.succeeds(); two.result.Run == one.result.Run {
		t.Errorf("both runs are named %s", two.result.Run)
	}
}

// What the registry remembers of an interrupted run holds when it goes on: attempts, budget, generation.
func runGoesOn(t *testing.T, at place) {
	g := newGang(t, at, workers(2, with(gangScoped, "muster.restart.budget", "1")))
	g.begin()["worker-1"].exit(5)
	g.cast("worker-0", "worker-1")
	g.run.signal(syscall.SIGTERM)
	g.interruptedWith(143)
	for name, a := range g.begin() {
		if a.attempt() != 3 || a.generation() != 3 {
			t.Errorf("%s: attempt %d, generation %d, want 3, 3", name, a.attempt(), a.generation())
		}
		if name == "worker-0" {
			a.exit(6) // one more than the budget
		}
	}
	g.fails(registry.ClassApp, "worker-0", 6, 93)
}

// muster run was killed and is run again before its agents are gone: that would have two processes of one
// instance. It is refused until they are.
func runTooSoon(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	agents := map[string]int{}
	for name, a := range cast {
		a.do(cue{Do: "trap"})
		agents[name] = g.agentPid(name)
	}
	g.run.kill()
	for _, a := range cast {
		a.hearsTerm()
	}
	second := start(t, "second muster run", g.environment(), g.runArgs()...)
	if code := second.wait(); code != 75 || !strings.Contains(second.err(), "is running already") {
		t.Errorf("muster run beside the old agents: exit code %d, %q, want 75", code, second.err())
	}
	g.unmoved(cast, "")
	for name, a := range cast {
		a.exit(0)
		await(t, "the end of the agent of "+name, func() bool { return !lives(agents[name]) })
	}
	for _, a := range g.takenUp() {
		a.exit(0)
	}
	g.succeeds()
}

// takenUp launches an interrupted run again and waits for the processes that stay: what a registry that
// outlived it knows makes it a new generation.
func (g *gang) takenUp() map[string]*actor {
	g.t.Helper()
	g.launchAll()
	generation := 1
	if g.place.consul != nil {
		generation = 2
	}
	return g.castOf(generation, g.def.instances()...)
}
