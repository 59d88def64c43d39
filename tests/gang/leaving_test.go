package gang

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// One agent is told to go: its process ends in grace, the others go on, a replacement takes its place.
func oneTerminated(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	leaver := cast["worker-1"]
	leaver.do(cue{Do: "trap"})
	g.agents["worker-1"].signal(syscall.SIGTERM)
	leaver.hearsTerm()
	leaver.do(cue{Do: "save", N: 11})
	leaver.exit(0)
	if code := g.agents["worker-1"].wait(); code != 143 {
		t.Errorf("the agent ended with %d, want 143", code)
	}
	if m := g.member("worker-1"); m.Phase != registry.PhaseLeft || m.Exit == nil || m.Exit.Class != registry.ClassLauncher {
		t.Errorf("record %+v, want left, class launcher", m)
	}
	g.unmoved(cast, "worker-1")

	g.launch("worker-1")
	again := g.stage.next("worker-1")
	if again.attempt() != 2 || again.port() != leaver.port() || !strings.HasSuffix(again.env("MUSTER_CHECKPOINT"), "ckpt-11") {
		t.Errorf("replacement: attempt %d, port %d, checkpoint %q, want 2, %d, ckpt-11", again.attempt(), again.port(), again.env("MUSTER_CHECKPOINT"), leaver.port())
	}
	if m := g.member("worker-1"); m.Budget.Used != 0 {
		t.Errorf("budget used %d, want 0: TERM from outside is free", m.Budget.Used)
	}
	g.unmoved(cast, "worker-1")
	again.exit(0)
	cast["worker-0"].exit(0)
	g.succeeds()
}

// In the gang scope the others stop too, and wait for the replacement as the next generation.
func oneTerminatedGang(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	cast := g.begin()
	g.agents["worker-1"].signal(syscall.SIGTERM)
	if code := g.agents["worker-1"].wait(); code != 143 {
		t.Errorf("the agent ended with %d, want 143", code)
	}
	cast["worker-0"].gone()
	await(t, "worker-0 waiting in generation 2", func() bool {
		m := g.member("worker-0")
		return m.Gen == 2 && m.Phase == registry.PhaseReady
	})
	if d, _ := g.directive(); d.Act != registry.ActWait || !strings.Contains(d.Why, "worker-1") {
		t.Errorf("directive %s, why %q, want wait for worker-1", d.Act, d.Why)
	}
	g.launch("worker-1")
	for name, a := range g.cast("worker-0", "worker-1") {
		if a.generation() != 2 {
			t.Errorf("%s: generation %d, want 2", name, a.generation())
		}
		a.exit(0)
	}
	g.succeeds()
	if d, _ := g.directive(); d.Budget.Used != 0 {
		t.Errorf("budget used %d, want 0: TERM from outside is free", d.Budget.Used)
	}
}

// All agents are told to go: no verdict, and the run resumes when it is launched again.
func allTerminated(t *testing.T, at place) { allSignalled(t, at, nil, syscall.SIGTERM, 143) }

func allInterrupted(t *testing.T, at place) { allSignalled(t, at, gangScoped, syscall.SIGINT, 130) }

func allSignalled(t *testing.T, at place, settings map[string]string, sig syscall.Signal, code int) {
	g := newGang(t, at, workers(2, settings))
	cast := g.begin()
	cast["worker-0"].do(cue{Do: "save", N: 3})
	for _, p := range g.agents {
		p.signal(sig)
	}
	g.interruptedWith(code)
	for _, a := range cast {
		a.gone()
	}
	for name := range g.keys() {
		if strings.HasPrefix(name, "verdict/") || strings.HasPrefix(name, "live/") {
			t.Errorf("key %s, want no verdict and nobody live", name)
		}
	}
	out, _ := g.verb("ps", g.app, "--json", "--registry", at.consul.URL())
	var view struct{ Phase, Outcome string }
	if err := json.Unmarshal([]byte(out), &view); err != nil || view.Phase != "interrupted" || view.Outcome != "interrupted" {
		t.Errorf("muster ps: %v, %+v, want interrupted", err, view)
	}

	g.launchAll()
	for name, a := range g.castOf(2, "worker-0", "worker-1") {
		if a.attempt() < 2 || a.generation() != 2 {
			t.Errorf("%s: attempt %d, generation %d, want at least 2, and 2", name, a.attempt(), a.generation())
		}
		if used := g.member(name).Budget.Used; used != 0 {
			t.Errorf("budget used by %s: %d, want 0: TERM from outside is free", name, used)
		}
		if got, want := a.env("MUSTER_CHECKPOINT"), filepath.Join(g.work, "checkpoint", "ckpt-3"); got != want {
			t.Errorf("%s: checkpoint %q, want %q", name, got, want)
		}
		a.exit(0)
	}
	g.succeeds()
}

// A second signal is the end of all grace.
func secondTerm(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	a := g.begin()["worker-0"]
	a.do(cue{Do: "trap"})
	g.agents["worker-0"].signal(syscall.SIGTERM)
	a.hearsTerm()
	a.stays()
	a.goneBy(func() { g.agents["worker-0"].again(syscall.SIGTERM) })
	g.interruptedWith(143)
}

// muster stop ends the run with its own verdict.
func stopVerb(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	for _, a := range cast {
		a.do(cue{Do: "trap"})
	}
	stop := g.beginVerb("stop", g.app)
	for _, a := range cast {
		a.hearsTerm()
	}
	if stop.ended() {
		t.Error("muster stop has ended before the processes")
	}
	for _, a := range cast {
		a.exit(0)
	}
	if code := stop.wait(); code != 0 || !strings.Contains(stop.out(), "stopped") {
		t.Errorf("muster stop: %q, exit code %d, want stopped, 0", stop.out(), code)
	}
	g.stopped(0)
}

// stopped waits for the end and expects the verdict stopped, 0 of the agents and that of muster run.
func (g *gang) stopped(run int) {
	g.t.Helper()
	e := g.end()
	if e.verdict == nil || e.verdict.Outcome != registry.Stopped {
		g.t.Errorf("verdict %+v, want stopped", e.verdict)
	}
	for in, code := range e.agents {
		if code != 0 {
			g.t.Errorf("agent of %s ended with %d, want 0", in, code)
		}
	}
	if g.run != nil && (e.run != run || e.result.Outcome != "stopped") {
		g.t.Errorf("muster run: %s, exit code %d, want stopped, %d", e.result.Outcome, e.run, run)
	}
}

func stopAtOnce(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	for _, a := range cast {
		a.do(cue{Do: "trap"})
	}
	if out, code := g.verb("stop", g.app, "--grace", "0s"); code != 0 {
		t.Errorf("muster stop: %q, exit code %d, want 0", out, code)
	}
	for _, a := range cast {
		a.gone() // it does not end by itself, and its own grace is 30 s
	}
	for _, name := range g.def.instances() {
		g.agentSays(name, "exit=\"killed by SIGKILL\"")
	}
	g.stopped(0)
}

// A gang that has not come together yet can be stopped too.
func stopAtBarrier(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	g.launch("worker-0")
	p := g.agents["worker-0"]
	g.sees("worker-0", "waiting", "")
	if out, code := g.verb("stop", g.app); code != 0 || !strings.Contains(out, "stopped") {
		t.Errorf("muster stop: %q, exit code %d, want stopped, 0", out, code)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("the agent ended with %d, want 0", code)
	}
	if n := g.stage.starts("worker-0"); n != 0 {
		t.Errorf("worker-0 was started %d times, want never", n)
	}
}

// A pause before a restart is no reason to wait.
func stopInBackoff(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart.backoff": "1h..1h"}))
	cast := g.begin()
	cast["worker-0"].exit(1)
	g.stage.next("worker-0").exit(1) // the first restart is immediate
	g.sees("worker-0", "backoff", "restarting 2/5")
	if out, code := g.verb("stop", g.app); code != 0 || !strings.Contains(out, "stopped") {
		t.Errorf("muster stop: %q, exit code %d, want stopped, 0", out, code)
	}
	cast["worker-1"].gone()
	g.stopped(0)
	if n := g.stage.starts("worker-0"); n != 2 {
		t.Errorf("worker-0 was started %d times, want twice", n)
	}
}
