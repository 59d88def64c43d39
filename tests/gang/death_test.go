package gang

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// guardPid is the process between agent and app, from the file left for the next agent.
func (g *gang) guardPid(instance string) int {
	g.t.Helper()
	var file struct{ Guard struct{ Pid int } }
	g.readJSON(filepath.Join(g.state, "apps", g.app, instance+".json"), &file)
	return file.Guard.Pid
}

// An agent is killed: nothing of its tree is left, its log is complete, and its replacement has index and
// ports at once, by proof.
func agentKilledInstance(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	victim := cast["worker-0"]
	victim.do(cue{Do: "trap"}) // it would not end by itself
	victim.do(cue{Do: "fork", Text: "grandchild"})
	grandchild := g.stage.next("worker-0/grandchild")
	grandchild.do(cue{Do: "fork", Text: "grandchild's child"})
	second := g.stage.next("worker-0/grandchild's child")
	copied := filepath.Join(g.work, "worker-0", "copy")
	victim.do(cue{Do: "pour", Text: copied})
	await(t, "a megabyte of output", func() bool {
		info, err := os.Stat(copied)
		return err == nil && info.Size() > 1<<20
	})
	guard := g.guardPid("worker-0")

	g.agents["worker-0"].kill()
	for _, a := range []*actor{victim, grandchild, second} {
		a.gone()
		await(t, a.Name+" without a trace", func() bool { return !lives(a.Pid) })
	}
	await(t, "the guard without a trace", func() bool { return !lives(guard) })
	sameBytes(t, read(g.log("worker-0", "stdout.log")), read(copied))

	g.launch("worker-0")
	again := g.stage.next("worker-0")
	if again.attempt() != 2 || again.generation() != 1 || again.port() != victim.port() {
		t.Errorf("replacement: attempt %d, generation %d, port %d, want 2, 1, %d", again.attempt(), again.generation(), again.port(), victim.port())
	}
	g.agents["worker-0"].says("proof=P2")
	if m := g.member("worker-0"); m.Budget.Used != 1 {
		t.Errorf("budget used %d, want 1: a death counts once", m.Budget.Used)
	}
	g.unmoved(cast, "worker-0")
	again.exit(0)
	cast["worker-1"].exit(0)
	g.succeeds()
}

// sameBytes compares a log with its writer's own copy. The writer may have been killed between the two:
// the log may have one line more.
func sameBytes(t *testing.T, logged, copied string) {
	t.Helper()
	more, ok := strings.CutPrefix(logged, copied)
	if !ok {
		at := 0
		for at < min(len(logged), len(copied)) && logged[at] == copied[at] {
			at++
		}
		t.Fatalf("the log has %d bytes, its writer's copy %d, and they part at byte %d", len(logged), len(copied), at)
	}
	if strings.Count(more, "\n") > 1 || more != "" && !strings.HasSuffix(more, "\n") {
		t.Errorf("the log goes on after its writer's copy with %q", more)
	}
}

// In the gang scope the replacement makes a new generation, at once.
func agentKilledGang(t *testing.T, at place) {
	g := newGang(t, at, workers(3, gangScoped))
	cast := g.begin()
	name := "worker-1"
	if g.conductor() == name { // the dead conductor's lock is another story
		name = "worker-2"
	}
	g.agents[name].kill()
	cast[name].gone()
	g.launch(name)
	for other, a := range g.cast(g.def.instances()...) {
		if a.generation() != 2 || a.attempt() != 2 || a.port() != cast[other].port() {
			t.Errorf("%s: generation %d, attempt %d, port %d, want 2, 2, %d", other, a.generation(), a.attempt(), a.port(), cast[other].port())
		}
		a.exit(0)
	}
	g.agents[name].says("proof=P2")
	g.succeeds()
	if d, _ := g.directive(); d.Budget.Used != 1 {
		t.Errorf("budget used %d, want 1: a death counts once", d.Budget.Used)
	}
}

// Deaths of agents are restarts too: a spent budget ends the run.
func agentDeathsSpend(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart.budget": "1"}))
	g.begin()
	g.agents["worker-0"].kill()
	g.launch("worker-0")
	g.stage.next("worker-0")
	g.agents["worker-0"].kill()
	g.launch("worker-0")
	g.fails(registry.ClassHost, "worker-0", 75, 75)
}

// All agents die and are launched again: the run goes on from the checkpoint, and nothing is forgiven.
func allKilled(t *testing.T, at place) {
	g := newGang(t, at, training(2, nil))
	cast := g.begin()
	cast["ps-0"].do(cue{Do: "save", N: 20})
	cast["worker-1"].exit(1)
	cast["worker-1"] = g.stage.next("worker-1")
	g.agentSays("worker-1", `msg="checkpoint found" step=20`)
	await(t, "the restart of worker-1 in its record", func() bool { return g.member("worker-1").Budget.Used == 1 })
	for _, p := range g.agents {
		p.signal(syscall.SIGKILL)
	}
	for _, p := range g.agents {
		p.wait()
	}
	g.launchAll()
	again := g.castOf(2, g.def.instances()...)
	for name, want := range map[string]int{"ps-0": 2, "worker-0": 2, "worker-1": 3} {
		a := again[name]
		if a.attempt() < want || a.generation() != 2 || a.port() != cast[name].port() {
			t.Errorf("%s: attempt %d, generation %d, port %d, want at least %d, 2, %d", name, a.attempt(), a.generation(), a.port(), want, cast[name].port())
		}
		if got, want := a.env("MUSTER_CHECKPOINT"), filepath.Join(g.work, "checkpoint", "ckpt-20"); got != want {
			t.Errorf("%s: checkpoint %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]int{"ps-0": 1, "worker-0": 1, "worker-1": 2} {
		if got := g.member(name).Budget.Used; got != want {
			t.Errorf("budget used by %s: %d, want %d", name, got, want)
		}
	}
	again["worker-0"].exit(0)
	again["worker-1"].exit(0)
	g.succeeds()
}

func allKilledGang(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	cast := g.begin()
	cast["worker-0"].do(cue{Do: "save", N: 20})
	g.agentSays("worker-0", `msg="checkpoint found" step=20`)
	cast["worker-1"].exit(1)
	g.cast("worker-0", "worker-1")
	for _, p := range g.agents {
		p.signal(syscall.SIGKILL)
	}
	for _, p := range g.agents {
		p.wait()
	}
	g.launchAll()
	for name, a := range g.cast("worker-0", "worker-1") {
		if a.generation() != 3 || a.attempt() != 3 {
			t.Errorf("%s: generation %d, attempt %d, want 3, 3", name, a.generation(), a.attempt())
		}
		if got, want := a.env("MUSTER_CHECKPOINT"), filepath.Join(g.work, "checkpoint", "ckpt-20"); got != want {
			t.Errorf("%s: checkpoint %q, want %q", name, got, want)
		}
		a.exit(0)
	}
	g.succeeds()
	if d, _ := g.directive(); d.Budget.Used != 2 {
		t.Errorf("budget used %d, want 2: one failure, one death of all", d.Budget.Used)
	}
}

// An agent that dies at the barrier costs nothing: no process has been lost.
func killedWhileWaiting(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart.budget": "0"}))
	g.launch("worker-0")
	g.sees("worker-0", "waiting", "")
	g.agents["worker-0"].kill()
	g.launch("worker-0")
	g.launch("worker-1")
	for name, a := range g.cast("worker-0", "worker-1") {
		if a.attempt() != 1 || a.generation() != 1 {
			t.Errorf("%s: attempt %d, generation %d, want 1, 1", name, a.attempt(), a.generation())
		}
		a.exit(0)
	}
	g.succeeds()
}

// Its ports are gone when the replacement comes: the address has changed, so a new generation forms.
func portsTaken(t *testing.T, at place) {
	g := newGang(t, at, workers(2, gangScoped))
	cast := g.begin()
	old := cast["worker-0"].port()
	guard := g.guardPid("worker-0")
	g.agents["worker-0"].kill()
	await(t, "the guard without a trace", func() bool { return !lives(guard) })
	stranger, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(old)))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	g.launch("worker-0")
	for name, a := range g.cast("worker-0", "worker-1") {
		if a.generation() != 2 || (name == "worker-0") == (a.port() == cast[name].port()) {
			t.Errorf("%s: generation %d, port %d, want 2; it had %d, which a stranger took from worker-0", name, a.generation(), a.port(), cast[name].port())
		}
		a.exit(0)
	}
	g.succeeds()
	if used := g.member("worker-1").Budget.Used; used != 0 {
		t.Errorf("budget used by worker-1: %d, want 0: it has done nothing", used)
	}
}

// What a process leaves behind is gone before the next one starts.
func leftoversBeforeRestart(t *testing.T, at place) {
	g := newGang(t, at, workers(1, nil))
	one := g.begin()["worker-0"]
	one.do(cue{Do: "fork", Text: "leftover"})
	leftover := g.stage.next("worker-0/leftover")
	one.exit(1)
	two := g.stage.next("worker-0")
	if lives(leftover.Pid) {
		t.Errorf("pid %d of the first attempt lives beside the second", leftover.Pid)
	}
	two.exit(0)
	g.succeeds()
}

// An agent dies after its process has come to its end: the result stands, nothing is started again.
func resultOutlivesAgent(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	cast["worker-0"].exit(0)
	await(t, "the result of worker-0", func() bool { return g.member("worker-0").Phase == registry.PhaseEnded })
	g.agents["worker-0"].kill()
	g.launch("worker-0")
	again := g.agents["worker-0"]
	again.says("its result counts")
	cast["worker-1"].stays()
	cast["worker-1"].exit(0)
	if code := g.agents["worker-1"].wait(); code != 0 {
		t.Errorf("agent of worker-1 ended with %d, want 0", code)
	}
	if code := again.wait(); code != 0 {
		t.Errorf("the new agent of worker-0 ended with %d, want the verdict's 0", code)
	}
	if n := g.stage.starts("worker-0"); n != 1 {
		t.Errorf("worker-0 was started %d times, want once", n)
	}
}

// An agent is frozen for longer than its session lives: its process runs on, nobody may take its place,
// and when it wakes it attaches itself again.
func agentFrozen(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	name := "worker-1"
	if g.conductor() == name {
		name = "worker-0"
	}
	in, err := registry.ParseInstance(name)
	if err != nil {
		t.Fatal(err)
	}
	live := fmt.Sprintf("live/%s/%d", in.Component, in.Index)
	g.agents[name].signal(syscall.SIGSTOP)
	await(t, "the end of its session", func() bool { _, there := g.keys()[live]; return !there })
	second := g.another(name, nil)
	second.says("to=standby") // it does not answer, and is not gone
	g.unmoved(cast, "")
	g.agents[name].signal(syscall.SIGCONT)
	await(t, "its live key again", func() bool { _, there := g.keys()[live]; return there })
	if code := second.wait(); code != 75 {
		t.Errorf("a second agent from a shell ended with %d, want 75 once the first answers", code)
	}
	g.unmoved(cast, "")
	if d, _ := g.directive(); d.Gen != 1 {
		t.Errorf("generation %d, want 1 still", d.Gen)
	}
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
}

// Two failures at the same time make one new generation.
func twoFailuresAtOnce(t *testing.T, at place) {
	g := newGang(t, at, workers(4, gangScoped))
	cast := g.begin()
	for _, name := range []string{"worker-0", "worker-1", "worker-2"} {
		cue := cue{Do: "exit", N: 5}
		if err := json.NewEncoder(cast[name].conn).Encode(cue); err != nil {
			t.Logf("%s was stopped before it could fail: %v", name, err) // the first failure was that fast
		}
	}
	for name, a := range g.cast(g.def.instances()...) {
		if a.generation() != 2 || a.attempt() != 2 {
			t.Errorf("%s: generation %d, attempt %d, want 2, 2", name, a.generation(), a.attempt())
		}
		a.exit(0)
	}
	g.succeeds()
}
