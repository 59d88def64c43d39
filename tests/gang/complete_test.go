package gang

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// A component may lose some of its instances for good.
func minFailed(t *testing.T, at place) {
	g := newGang(t, at, workers(3, map[string]string{"muster.restart": "never", "muster.complete.minFailed": "2"}))
	cast := g.begin()
	cast["worker-0"].exit(1)
	g.sees("worker-0", "finishing", "exited with 1")
	cast["worker-1"].stays()
	cast["worker-2"].exit(2)
	e := g.end()
	if e.verdict == nil || e.verdict.Outcome != registry.Failed || e.verdict.First != "worker-0" {
		t.Errorf("verdict %+v, want failed, worker-0 first", e.verdict)
	}
	cast["worker-1"].gone()
}

// Some successes may be enough; the others are stopped in grace.
func minSucceeded(t *testing.T, at place) {
	g := newGang(t, at, workers(3, map[string]string{"muster.complete.minSucceeded": "2"}))
	cast := g.begin()
	cast["worker-1"].do(cue{Do: "trap"})
	cast["worker-0"].exit(0)
	cast["worker-2"].exit(0)
	cast["worker-1"].hearsTerm()
	cast["worker-1"].exit(9)
	g.succeeds()
}

// A service starts when it is staged, holds nobody up, starts again without end, and ends with the app.
func services(t *testing.T, at place) {
	def := workers(2, map[string]string{"muster.restart.budget": "1"})
	def.components = append(def.components, component{name: "tensorboard", count: 1, port: true})
	g := newGang(t, at, def)
	var service *actor
	if at.agents() {
		g.launch("tensorboard-0")
		service = g.stage.next("tensorboard-0") // alone: nobody else was launched
		g.launch("worker-0")
		g.launch("worker-1")
	} else {
		g.launchAll()
		service = g.stage.next("tensorboard-0")
	}
	cast := g.cast("worker-0", "worker-1")
	if world := cast["worker-0"].number("MUSTER_WORLD_SIZE"); world != 2 {
		t.Errorf("world size %d, want 2: a service is none of them", world)
	}
	for i := range 3 { // more than the budget
		service.exit(1)
		service = g.stage.next("tensorboard-0")
		if service.attempt() != i+2 {
			t.Errorf("attempt %d of the service, want %d", service.attempt(), i+2)
		}
	}
	for _, a := range cast {
		a.stays()
		a.exit(0)
	}
	service.gone()
	g.succeeds()
}

// Workers end the job; parameter servers and evaluators end with it. An evaluator stands outside the cluster.
func rolesAtTheEnd(t *testing.T, at place) {
	def := training(2, map[string]string{"muster.framework": "tensorflow"})
	def.components = append(def.components, component{name: "evaluator", count: 1})
	g := newGang(t, at, def)
	cast := g.begin()
	for name, a := range cast {
		var tf struct {
			Cluster map[string][]string
			Task    struct {
				Type  string
				Index int
			}
		}
		if err := json.Unmarshal([]byte(a.env("TF_CONFIG")), &tf); err != nil {
			t.Fatalf("TF_CONFIG of %s: %v", name, err)
		}
		in, _ := registry.ParseInstance(name)
		if tf.Task.Type != in.Component || tf.Task.Index != in.Index {
			t.Errorf("TF_CONFIG of %s says it is %s %d", name, tf.Task.Type, tf.Task.Index)
		}
		var roles []string
		for role, addresses := range tf.Cluster {
			roles = append(roles, role)
			for i, address := range addresses {
				peer := cast[registry.Instance{Component: role, Index: i}.String()]
				if want := peer.env("MUSTER_HOST") + ":" + peer.env("MUSTER_PORT"); address != want {
					t.Errorf("TF_CONFIG of %s: %s %d at %s, want %s", name, role, i, address, want)
				}
			}
		}
		if slices.Sort(roles); !slices.Equal(roles, []string{"ps", "worker"}) {
			t.Errorf("TF_CONFIG of %s: cluster of %q, want ps and worker", name, roles)
		}
	}
	cast["evaluator-0"].exit(3)
	again := g.stage.next("evaluator-0")
	cast["ps-0"].do(cue{Do: "trap"})
	cast["worker-0"].exit(0)
	g.sees("worker-0", "finishing", "exited with 0")
	cast["ps-0"].stays()
	again.stays()
	cast["worker-1"].exit(0)
	cast["ps-0"].hearsTerm()
	cast["ps-0"].exit(0)
	again.gone()
	g.succeeds()
}

// A parameter server beyond its budget fails the job, though its end would not end it.
func parameterServerBeyondBudget(t *testing.T, at place) {
	g := newGang(t, at, training(1, map[string]string{"muster.restart.budget": "1"}))
	g.begin()["ps-0"].exit(3)
	g.stage.next("ps-0").exit(3)
	g.fails(registry.ClassApp, "ps-0", 3, 93)
}

// An evaluator beyond its budget does not: training is whole without it.
func evaluatorBeyondBudget(t *testing.T, at place) {
	def := workers(1, map[string]string{"muster.restart.budget": "1"})
	def.components = append(def.components, component{name: "evaluator", count: 1})
	g := newGang(t, at, def)
	cast := g.begin()
	cast["evaluator-0"].exit(3)
	g.stage.next("evaluator-0").exit(3)
	g.sees("evaluator-0", "finishing", "exited with 3")
	cast["worker-0"].stays()
	cast["worker-0"].exit(0)
	g.succeeds()
}

// A run may be given so long and no longer.
func runsTooLong(t *testing.T, at place) {
	// the time begins with the staging: on busy cores it may be over before a process has begun
	g := newGang(t, at, workers(2, map[string]string{
		"muster.timeout": "3s", "muster.stop.grace": "1s", "muster.command": "trap '' TERM; while :; do sleep 1; done",
	}))
	g.launchAll()
	e := g.end()
	if e.verdict == nil || e.verdict.Class != registry.ClassTimeout || !strings.Contains(e.verdict.Cause, "muster.timeout") {
		t.Errorf("verdict %+v, want timeout, naming muster.timeout", e.verdict)
	}
	for name, code := range e.agents {
		if code != 76 {
			t.Errorf("agent of %s ended with %d, want 76", name, code)
		}
		for _, started := range startedLine.FindAllStringSubmatch(read(g.log(name, "agent.log")), -1) {
			if pid, _ := strconv.Atoi(started[1]); lives(pid) {
				t.Errorf("the process of %s, %d, is still there", name, pid)
			}
		}
	}
}

// What cannot be staged ends the run before anything starts.
func stagingFails(t *testing.T, at place) {
	g := newGang(t, at, workers(2, nil))
	inTheWay := filepath.Join(g.work, "worker-1")
	for _, path := range []string{inTheWay, filepath.Join(g.work, ".package.stamp"), filepath.Join(g.work, ".instance-worker-1")} { // the folders are muster's, or they would be refused
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g.launchAll()
	e := g.fails(registry.ClassData, "worker-1", 69, 69)
	if !strings.Contains(e.verdict.Cause, inTheWay) {
		t.Errorf("cause %q, want %s in it", e.verdict.Cause, inTheWay)
	}
	for _, name := range g.def.instances() {
		if n := g.stage.starts(name); n != 0 {
			t.Errorf("%s was started %d times, want never", name, n)
		}
	}
}
