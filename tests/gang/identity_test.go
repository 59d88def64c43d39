package gang

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/folder"
)

// nomad are variables by which an agent knows that Nomad launched it.
var nomad = []string{"NOMAD_ALLOC_ID=0b7b3f8e-5f0e-4d0c-8a39-2f6d4b1c9e11", "NOMAD_TASK_NAME=agent"}

// another starts one more agent of an index that has one.
func (g *gang) another(instance string, env []string, args ...string) *process {
	g.t.Helper()
	in, err := registry.ParseInstance(instance)
	if err != nil {
		g.t.Fatal(err)
	}
	return start(g.t, "another agent of "+instance, g.environment(env...), append(g.agentArgs(in), args...)...)
}

// From a shell, a second agent of one index is a mistake: it goes, and says who has it.
func secondAgentRefused(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	second := g.another("worker-0", nil)
	if code := second.wait(); code != 75 {
		t.Errorf("exit code %d, want 75", code)
	}
	m := g.member("worker-0")
	want := fmt.Sprintf("worker-0 is held by pid %d on %s since %s", g.agents["worker-0"].PID, m.Host, m.Since.Format("2006-01-02T15:04:05Z07:00"))
	if !strings.Contains(second.err(), want) {
		t.Errorf("it said %q, want %q in it", second.err(), want)
	}
	g.unmoved(cast, "")
	for _, a := range cast {
		a.exit(0)
	}
	g.succeeds()
}

// Under a launcher it stands by, and takes over as soon as the first is proved gone.
func secondAgentStandsBy(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	cast := g.begin()
	second := g.another("worker-0", nomad)
	second.says("to=standby")
	if want := fmt.Sprintf("worker-0 is held by pid %d", g.agents["worker-0"].PID); !strings.Contains(second.err(), want) {
		t.Errorf("it said %q, want %q in it", second.err(), want)
	}
	g.unmoved(cast, "")

	g.agents["worker-0"].kill()
	g.agents["worker-0"] = second
	cast["worker-0"].gone()
	again := g.stage.next("worker-0")
	if again.attempt() != 2 || again.generation() != 1 || again.port() != cast["worker-0"].port() {
		t.Errorf("after the take-over: attempt %d, generation %d, port %d, want 2, 1, %d", again.attempt(), again.generation(), again.port(), cast["worker-0"].port())
	}
	second.says("proof=P2")
	g.unmoved(cast, "worker-0")
	again.exit(0)
	cast["worker-1"].exit(0)
	g.succeeds()
}

// A standby whose gang comes to its verdict ends with it; it has started nothing.
func standbyEnds(t *testing.T, at place) {
	g := newGang(t, at, workers(2, map[string]string{"muster.restart": "never"}))
	cast := g.begin()
	second := g.another("worker-0", nomad)
	second.says("to=standby")
	cast["worker-1"].exit(4)
	g.fails(registry.ClassApp, "worker-1", 4, 93)
	if code := second.wait(); code != 93 {
		t.Errorf("standby ended with %d, want the verdict's 93", code)
	}
	if n := g.stage.starts("worker-0"); n != 1 {
		t.Errorf("worker-0 was started %d times, want once", n)
	}
}

var digests = regexp.MustCompile(`[0-9a-f]{64}`)

// An agent that would run something else does not join.
func anotherDefinition(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	g.launch("worker-0")
	g.sees("worker-0", "waiting", "")
	var record registry.AppRecord
	g.decode("app", g.keys()["app"].value, &record)

	other := g.another("worker-1", nil, "--set", "global:muster.restart.budget=9")
	if code := other.wait(); code != 65 {
		t.Errorf("exit code %d, want 65", code)
	}
	named := slices.Compact(slices.Sorted(slices.Values(digests.FindAllString(other.err(), -1))))
	if len(named) != 2 || !slices.Contains(named, strings.TrimPrefix(record.Digest, "sha256:")) {
		t.Errorf("it said %q, want the app's digest %s and its own in it", other.err(), record.Digest)
	}
	if want := "they differ in muster.restart.budget"; !strings.Contains(other.err(), want) {
		t.Errorf("it said %q, want %q in it", other.err(), want)
	}
	if _, there := g.keys()["members/worker/1"]; there {
		t.Error("the refused agent has left a record")
	}

	// Counts, folders and addresses are no part of what is the same.
	g.launch("worker-1", "--instances", "worker=2", "--work-dir", folder.Temp(t, "tg-"))
	for _, a := range g.cast("worker-0", "worker-1") {
		a.exit(0)
	}
	for name, p := range g.agents {
		if code := p.wait(); code != 0 {
			t.Errorf("agent of %s ended with %d, want 0", name, code)
		}
	}
}

// Agents that were given no index claim one each.
func claimedIndexes(t *testing.T, at place) {
	g := newGang(t, at, training(2, nil))
	var agents []*process
	for range 3 {
		agents = append(agents, start(t, "agent without an index", g.environment(),
			"agent", "--app", g.dir, "--app-id", g.app, "--registry", at.consul.URL(), "--host", "127.0.0.1", "--work-dir", g.work, "--state-dir", g.state))
	}
	cast := g.cast(g.def.instances()...)
	cast["worker-0"].exit(0)
	cast["worker-1"].exit(0)
	for _, p := range agents {
		if code := p.wait(); code != 0 {
			t.Errorf("agent %d ended with %d, want 0", p.PID, code)
		}
	}
	for name := range cast {
		if n := g.stage.starts(name); n != 1 {
			t.Errorf("%s was started %d times, want once", name, n)
		}
	}
}

// The process's output goes to the agent's own where a launcher keeps it, and where it is asked for.
func launcherGetsOutput(t *testing.T, at place) {
	for _, c := range []struct {
		env  []string
		args []string
		want bool
	}{
		{nomad, nil, true},
		{nomad, []string{"--tee=false"}, false},
		{nil, nil, false},
		{nil, []string{"--tee"}, true},
	} {
		g := newGang(t, at, workers(1, nil))
		agent := g.another("worker-0", c.env, c.args...)
		worker := g.stage.next("worker-0")
		worker.do(cue{Do: "say", Text: "loss 0.25"})
		worker.exit(0)
		if code := agent.wait(); code != 0 {
			t.Errorf("%q %q: exit code %d", c.env, c.args, code)
		}
		if got := strings.Contains(agent.err(), "\nloss 0.25\n"); got != c.want {
			t.Errorf("%q %q: the process's line on stderr: %t, want %t\n%s", c.env, c.args, got, c.want, agent.err())
		}
	}
}
