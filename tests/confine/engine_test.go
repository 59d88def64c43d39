package confine_test

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// Root on a host whose cgroups can be written has containers without asking, and is told why.
func TestAutoTakesContainer(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := newJob(t, "mkfifo hold; echo hostname $(hostname); echo here; cat hold", nil)
	p := j.plan()
	if p.Engine.Name != "container" || p.Engine.Why != "root, and a cgroup that can be written" {
		t.Errorf("engine %q, because of %q, want container for root with a cgroup", p.Engine.Name, p.Engine.Why)
	}
	run := j.begin()
	j.says("here")
	has(t, j.log("stdout.log"), map[string]string{"hostname": "worker-0"})
	if said := j.log("agent.log"); !strings.Contains(said, `msg=confined engine=container why="root, and a cgroup that can be written"`) {
		t.Errorf("the agent does not say which engine it took, and why:\n%s", said)
	}
	j.release()
	if code := run.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestNoSuchEngine(t *testing.T) {
	t.Parallel()
	j := newJob(t, "true", nil)
	for _, verb := range [][]string{{"run", j.dir}, {"plan", j.dir}, {"agent", "--app", j.dir, "--app-id", j.app}} {
		if _, said, code := j.verb(append(verb, "--engine", "jail")...); code != 64 || !strings.Contains(said, `--engine "jail": want auto, container, cgroup, process`) {
			t.Errorf("muster %s: %d: %s; want 64 with the engines", verb[0], code, said)
		}
	}
}
