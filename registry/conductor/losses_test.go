package conductor_test

import (
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// lostOf are those of the names that were declared lost.
func (g *gang) lostOf(names ...string) (lost []string) {
	for _, n := range names {
		if g.records[in(n)].Phase == registry.PhaseLost {
			lost = append(lost, n)
		}
	}
	return lost
}

func (g *gang) wantLost(n int) {
	g.t.Helper()
	if got := g.lostOf("worker-0", "worker-1", "worker-2"); len(got) != n {
		g.t.Fatalf("got %v lost, want %d", got, n)
	}
}

// wantLostAfter wants so many of worker-0 to worker-2 to be given up when that time is over, and nobody before.
func (g *gang) wantLostAfter(d time.Duration, n int) {
	g.t.Helper()
	g.pass(d - time.Second)
	g.wantLost(0)
	g.pass(time.Second)
	g.wantLost(n)
}

// back is a member whose session was attached again.
func (g *gang) back(name string, gen int) {
	g.live[in(name)], g.ready[in(name)] = true, gen
}

func TestMass(t *testing.T) {
	grace, mass := registry.DefaultTimes().Lost, registry.DefaultTimes().LostMass
	t.Run("most of the gang is held for longer", func(t *testing.T) {
		g := running(t, synchronous())
		g.die("worker-1")
		g.die("worker-2")
		g.settle()
		g.wantLostAfter(mass, 2)
	})
	t.Run("half of it is not", func(t *testing.T) {
		g := running(t, factsOf(component("worker", "worker", 2, registry.ScopeGang)))
		g.die("worker-1")
		g.settle()
		g.pass(grace)
		g.wantLost(1)
	})
	t.Run("one alone is most of it", func(t *testing.T) {
		g := running(t, factsOf(component("worker", "worker", 1, registry.ScopeGang)))
		g.die("worker-0")
		g.newConductor("newcomer")
		g.settle()
		g.wantLostAfter(mass, 1)
	})
	t.Run("its beginning starts the clocks anew", func(t *testing.T) {
		g := running(t, synchronous())
		g.die("worker-1")
		g.settle()
		g.pass(grace - time.Second)
		g.die("worker-2")
		g.settle()
		g.wantLostAfter(mass, 2)
	})
	t.Run("so does its end", func(t *testing.T) {
		g := running(t, synchronous())
		g.die("worker-1")
		g.die("worker-2")
		g.settle()
		g.pass(mass - time.Minute)
		g.back("worker-2", 1)
		g.settle()
		g.wantLostAfter(grace, 1)
	})
	t.Run("who comes as the time is over is seen before it is", func(t *testing.T) {
		g := running(t, synchronous())
		g.die("worker-1")
		g.settle()
		g.pass(grace - time.Second)
		g.die("worker-2") // nobody has read that
		g.pass(time.Second)
		g.wantLost(0)
	})
	t.Run("who has left or is lost does not count", func(t *testing.T) {
		g := running(t, factsOf(component("worker", "worker", 3, registry.ScopeInstance)))
		g.leave("worker-1")
		g.die("worker-2")
		g.settle()
		g.pass(grace)
		if got := g.lostOf("worker-1", "worker-2"); len(got) != 1 || got[0] != "worker-2" {
			t.Errorf("got %v lost, want worker-2 after %s", got, grace)
		}
	})
	t.Run("the members of the last roster count while the next generation waits", func(t *testing.T) {
		g := running(t, factsOf(component("worker", "worker", 4, registry.ScopeGang)))
		g.asks = []registry.Ask{{Kind: registry.AskFlex, ID: "1", Args: map[string]string{"worker": "2"}}}
		g.settle()
		g.want(registry.ActWait, 2)
		for _, n := range []string{"worker-1", "worker-2", "worker-3"} { // they may not have heard of it
			g.die(n)
		}
		g.newConductor("c2")
		g.settle()
		g.wantLostAfter(mass, 2) // worker-2 too, which was removed: nothing starts beside its process
	})
	t.Run("the members of the last run's roster count until a roster of the new one is sealed", func(t *testing.T) {
		g := running(t, synchronous())
		g.die("worker-1") // both hear nothing of the registry, and show each other
		g.die("worker-2")
		g.leave("worker-0")
		g.newRun(component("worker", "worker", 4, registry.ScopeGang))
		g.join("worker-0", "next-0", "h")
		g.join("worker-3", "next-3", "h")
		g.newConductor("next-0")
		g.settle()
		g.wantLostAfter(mass, 2)
	})
	t.Run("who alone is away of the last run is waited for as ever", func(t *testing.T) {
		g := running(t, synchronous())
		g.die("worker-1")
		g.leave("worker-0")
		g.leave("worker-2")
		g.newRun(component("worker", "worker", 4, registry.ScopeGang))
		g.newConductor("next-0")
		g.settle()
		g.wantLostAfter(grace, 1)
	})
	t.Run("who has left the last run does not count, though the new one has no place for it", func(t *testing.T) {
		g := running(t, factsOf(component("worker", "worker", 8, registry.ScopeGang)))
		for _, n := range []string{"worker-0", "worker-1", "worker-2", "worker-3", "worker-4", "worker-5", "worker-6"} {
			g.leave(n)
		}
		g.newRun(component("worker", "worker", 4, registry.ScopeGang))
		g.join("worker-0", "next-0", "h")
		g.join("worker-1", "next-1", "h")
		g.die("worker-1")
		g.newConductor("next-0")
		g.settle()
		g.pass(grace / 2)
		g.leave("worker-7") // it was on its way out
		g.wantLostAfter(grace/2, 1)
	})
	t.Run("who was on its way out when it was missed first has left", func(t *testing.T) {
		g := running(t, factsOf(component("worker", "worker", 8, registry.ScopeGang)))
		g.newRun(component("worker", "worker", 3, registry.ScopeGang))
		g.join("worker-0", "next-0", "h")
		for _, n := range []string{"worker-3", "worker-4", "worker-5", "worker-6", "worker-7"} {
			g.die(n)
		}
		g.die("worker-1")
		g.die("worker-2")
		g.newConductor("next-0")
		g.settle()
		if missed := g.c.Losses(); len(missed) != 7 || !missed[0].Mass {
			t.Fatalf("missed: %+v", missed)
		}
		g.join("worker-2", "next-2", "h")
		for _, n := range []string{"worker-3", "worker-4", "worker-5", "worker-6", "worker-7"} {
			g.leave(n)
		}
		g.pass(grace + 10*time.Second) // live/ is read every 5 s
		g.wantLost(1)
	})
	t.Run("who claims between two readings is not missed", func(t *testing.T) {
		g := newGang(t, factsOf(component("worker", "worker", 3, registry.ScopeGang), component("board", "service", 1, registry.ScopeInstance)))
		g.settle() // nobody is there
		for i, name := range []string{"worker-0", "worker-1", "board-0"} {
			g.now = g.now.Add(time.Second)
			g.join(name, "inc-"+name, "h")
			for range 40 {
				g.pass(time.Second)
				if missed := g.c.Losses(); len(missed) != 0 {
					t.Fatalf("%d: %s is there, and is missed: %+v", i, name, missed)
				}
			}
		}
	})
	t.Run("the time of a service that came and went begins when it is gone", func(t *testing.T) {
		g := running(t, factsOf(component("worker", "worker", 3, registry.ScopeGang), component("board", "service", 1, registry.ScopeInstance)))
		g.pass(time.Minute) // live/ is read every 30 s
		g.join("board-0", "inc-board", "h")
		g.readRecords(conductor.ReadRecords{Of: []registry.Instance{in("board-0")}})
		g.settle()
		g.pass(9 * time.Second)
		g.die("board-0") // and nobody has seen it since
		g.pass(30 * time.Second)
		if missed := g.c.Losses(); len(missed) != 1 || g.now.Sub(missed[0].Since) > 30*time.Second {
			t.Errorf("missed: %+v at %s", missed, g.now)
		}
	})
	t.Run("what is waited for and until when", func(t *testing.T) {
		g := running(t, synchronous())
		g.die("worker-1")
		g.settle()
		one := g.c.Losses()
		if len(one) != 1 || one[0].Instance != in("worker-1") || one[0].Mass || one[0].End.Sub(one[0].Since) != grace {
			t.Errorf("got %+v, want worker-1 after %s", one, grace)
		}
		g.die("worker-2")
		g.settle()
		two := g.c.Losses()
		if len(two) != 2 || two[1].Instance != in("worker-2") || !two[0].Mass || two[0].End.Sub(two[0].Since) != mass || two[0].Since.Equal(one[0].Since) {
			t.Errorf("got %+v, want both after %s", two, mass)
		}
	})
}
