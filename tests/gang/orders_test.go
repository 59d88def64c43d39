package gang

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestOrders: commandOrders hold across the gang, in each generation.
func TestOrders(t *testing.T) {
	t.Parallel()
	at := place{consul: consulserver.Start(t, consulserver.Options{})}
	for _, s := range []scenario{
		{"agents", inOrder},
		{"muster run", func(t *testing.T, at place) { at.run = true; inOrder(t, at) }},
		{"restart in place", nothingIsTakenBack},
		{"wait for each other", knotted},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.play(t, at)
		})
	}
}

// order adds commandOrders to the definition: what a START requires.
func (g *gang) order(requires map[string]string) {
	g.t.Helper()
	var orders []any
	for command, what := range requires {
		orders = append(orders, object{"command": command, "requires": what})
	}
	g.reshape(func(application object) { application["commandOrders"] = orders })
}

// reshape changes the definition before anything runs.
func (g *gang) reshape(change func(application object)) {
	g.t.Helper()
	path := filepath.Join(g.dir, "metainfo.json")
	var metainfo object
	g.readJSON(path, &metainfo)
	application, ok := metainfo["application"].(object)
	if !ok {
		g.t.Fatalf("%s: got %v, want an application", path, metainfo)
	}
	change(application)
	text, err := json.Marshal(metainfo)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// comesAfter expects that the others had reported that they are up when an instance starts.
func (g *gang) comesAfter(instance string, generation int, others ...string) *actor {
	g.t.Helper()
	a := g.stage.next(instance)
	for _, other := range others {
		if m := g.member(other); m.Up != generation {
			g.t.Errorf("%s was started in generation %d when %s was up in %d", instance, generation, other, m.Up)
		}
	}
	return a
}

// Workers start after their parameter servers, a board after the workers; and again when all start again.
func inOrder(t *testing.T, at place) {
	def := training(2, gangScoped)
	def.components[0].count = 2
	def.components = append(def.components, component{name: "tensorboard", count: 1, port: true})
	g := newGang(t, at, def)
	g.order(map[string]string{"worker-START": "ps-STARTED", "tensorboard-START": "worker-STARTED,ps-INSTALLED"})
	g.launchAll()
	for generation := 1; generation <= 2; generation++ {
		var workers []*actor
		for _, in := range []string{"worker-0", "worker-1"} {
			workers = append(workers, g.comesAfter(in, generation, "ps-0", "ps-1"))
		}
		g.cast("ps-0", "ps-1")
		if generation == 1 {
			g.comesAfter("tensorboard-0", 1, "worker-0", "worker-1")
			workers[1].exit(3)
			continue
		}
		for _, a := range workers {
			if a.generation() != 2 {
				t.Errorf("%s: generation %d, want 2", a.Name, a.generation())
			}
		}
		await(t, "all are released", func() bool {
			d, _ := g.directive()
			return d.Gen == 2 && d.Act == "run" && len(d.Released) == 0 && d.Why == "all are ready"
		})
		for _, a := range workers {
			a.exit(0)
		}
	}
	g.succeeds()
	if n := g.stage.starts("tensorboard-0"); n != 1 {
		t.Errorf("the board was started %d times, want once: a service goes on", n)
	}
}

// A parameter server that comes back in place holds up nobody who was released.
func nothingIsTakenBack(t *testing.T, at place) {
	g := newGang(t, at, training(1, map[string]string{"muster.restart": "instance"}))
	g.order(map[string]string{"worker-START": "ps-STARTED"})
	g.launchAll()
	worker := g.comesAfter("worker-0", 1, "ps-0")
	g.stage.next("ps-0").exit(4)
	again := g.stage.next("ps-0")
	worker.stays()
	if again.generation() != 1 || again.attempt() != 2 {
		t.Errorf("ps-0 again: generation %d, attempt %d, want 1, 2", again.generation(), again.attempt())
	}
	worker.exit(2)
	g.stage.next("worker-0").exit(0)
	g.succeeds()
}

// Two that wait for each other are refused before anything starts.
func knotted(t *testing.T, at place) {
	g := newGang(t, at, training(1, nil))
	g.order(map[string]string{"worker-START": "ps-STARTED", "ps-START": "worker-STARTED"})
	g.launch("worker-0")
	if code := g.agents["worker-0"].wait(); code != 65 {
		t.Errorf("exit code %d, want 65", code)
	}
}
