package gang

import (
	"testing"
)

// awaitAnother waits until somebody else than the dead conductor conducts.
func (g *gang) awaitAnother(dead string) {
	g.t.Helper()
	await(g.t, "another conductor than "+dead, func() bool {
		d, conducted := g.directive()
		return conducted && d.By != dead
	})
}

// unmoved expects that these processes are still those of the first start.
func (g *gang) unmoved(cast map[string]*actor, but string) {
	g.t.Helper()
	for name, a := range cast {
		if name == but {
			continue
		}
		a.stays()
		if n := g.stage.starts(name); n != 1 {
			g.t.Errorf("%s was started %d times, want once", name, n)
		}
	}
}

// The conducting agent dies and nobody replaces it: another one conducts, no other process restarts.
func conductorKilled(t *testing.T, at place) {
	g := newGang(t, at, training(2, nil))
	cast := g.begin()
	name := g.conductor()
	inc := g.member(name).Inc
	g.agents[name].kill()
	cast[name].gone()
	g.awaitAnother(inc)
	g.unmoved(cast, name)
	if d, _ := g.directive(); d.Gen != 1 {
		t.Errorf("generation %d under the new conductor, want 1 still", d.Gen)
	}

	// The new one rules: the run ends right once the dead one's place is taken.
	g.launch(name)
	again := g.stage.next(name)
	g.unmoved(cast, name)
	cast[name] = again
	for _, worker := range []string{"worker-0", "worker-1"} {
		cast[worker].exit(0)
	}
	g.succeeds()
}

// Its replacement does not have to wait for the dead one's lock.
func conductorReplaced(t *testing.T, at place) {
	g := newGang(t, at, training(2, nil))
	cast := g.begin()
	name := g.conductor()
	inc := g.member(name).Inc
	g.agents[name].kill()
	g.launch(name)
	again := g.stage.next(name)
	if again.generation() != 1 || again.attempt() != 2 || again.port() != cast[name].port() {
		t.Errorf("replacement: generation %d, attempt %d, port %d, want 1, 2, %d", again.generation(), again.attempt(), again.port(), cast[name].port())
	}
	g.unmoved(cast, name)
	g.awaitAnother(inc)
	g.unmoved(cast, name)
	cast[name] = again
	for _, worker := range []string{"worker-0", "worker-1"} {
		cast[worker].exit(0)
	}
	g.succeeds()
}

// In the gang scope the replacement makes a new generation, which has to wait for a new conductor.
func conductorReplacedGang(t *testing.T, at place) {
	g := newGang(t, at, workers(3, gangScoped))
	cast := g.begin()
	name := g.conductor()
	g.agents[name].kill()
	g.launch(name)
	for other, a := range g.cast(g.def.instances()...) {
		if a.generation() != 2 || a.attempt() != 2 || a.port() != cast[other].port() {
			t.Errorf("%s: generation %d, attempt %d, port %d, want 2, 2, %d", other, a.generation(), a.attempt(), a.port(), cast[other].port())
		}
		a.exit(0)
	}
	g.succeeds()
	if d, _ := g.directive(); d.Budget.Used != 1 {
		t.Errorf("budget used %d, want 1: a death counts once", d.Budget.Used)
	}
}
