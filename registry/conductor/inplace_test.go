package conductor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// untold is a component whose processes are not told of each other.
func untold(name string, count int) conductor.ComponentFacts {
	c := component(name, "worker", count, registry.ScopeInstance)
	c.InPlace, c.Moves = true, true
	return c
}

func (g *gang) rows() []string {
	var names []string
	for _, row := range g.roster.Rows {
		names = append(names, row.Instance.String()+"@"+row.Inc)
	}
	return names
}

func (g *gang) wantRows(want ...string) {
	g.t.Helper()
	if got := g.rows(); !slices.Equal(got, want) {
		g.t.Fatalf("roster %q, want %q", got, want)
	}
	for rank, row := range g.roster.Rows {
		if row.Rank != rank {
			g.t.Fatalf("%s has rank %d at %d", row.Instance, row.Rank, rank)
		}
	}
}

// Instances that nobody is told of come and go while the others run: the generation stays, and so do the rows of those
// that run.
func TestFlexInPlace(t *testing.T) {
	g := running(t, factsOf(untold("worker", 2)))
	g.flexTo("3")
	g.want(registry.ActRun, 1)
	if g.dir.Target["worker"] != 3 || g.dir.Counts["worker"] != 2 {
		t.Fatalf("directive %+v", g.dir)
	}
	g.join("worker-2", "new", "h9")
	g.pass(5 * time.Second)
	if g.dir.Target == nil {
		t.Fatal("in force before the newcomer has published its ports")
	}
	g.publish("worker-2")
	g.pass(5 * time.Second)
	g.want(registry.ActRun, 1)
	g.wantRows("worker-0@inc-worker-0", "worker-1@inc-worker-1", "worker-2@new")
	if g.dir.Target != nil || g.dir.Counts["worker"] != 3 || len(g.asks) != 0 {
		t.Fatalf("directive %+v, asks %v", g.dir, g.asks)
	}
	g.ack("worker-2")
	g.pass(time.Hour)
	g.want(registry.ActRun, 1)

	g.flexTo("1")
	g.want(registry.ActRun, 1)
	if g.dir.Counts["worker"] != 1 || !g.dir.Drops(in("worker-1")) || !g.dir.Drops(in("worker-2")) {
		t.Fatalf("directive %+v", g.dir)
	}
	g.pass(10 * time.Second)
	if len(g.roster.Rows) != 3 {
		t.Fatalf("roster %q although the removed processes may run", g.rows())
	}
	g.leave("worker-2")
	g.leave("worker-1")
	g.pass(10 * time.Second)
	g.want(registry.ActRun, 1)
	g.wantRows("worker-0@inc-worker-0")
}

// One ask may add to one component and take from another: who goes goes at once, who comes is waited for.
func TestFlexInPlaceBothWays(t *testing.T) {
	g := running(t, factsOf(untold("a", 3), untold("b", 1)))
	g.ask(registry.AskFlex, "flex", map[string]string{"a": "1", "b": "2"})
	g.want(registry.ActRun, 1)
	if g.dir.Counts["a"] != 1 || g.dir.Counts["b"] != 1 || g.dir.Target["b"] != 2 {
		t.Fatalf("directive %+v", g.dir)
	}
	g.leave("a-1")
	g.join("b-1", "new", "h9")
	g.publish("b-1")
	g.pass(10 * time.Second)
	if g.dir.Target == nil {
		t.Fatal("in force while a removed process may run")
	}
	g.leave("a-2")
	g.pass(10 * time.Second)
	g.want(registry.ActRun, 1)
	g.wantRows("a-0@inc-a-0", "b-0@inc-b-0", "b-1@new")
}

// An agent of a removed index that died with its host is lost like any other, and then the roster is without it.
func TestFlexInPlaceOverALoss(t *testing.T) {
	g := running(t, factsOf(untold("worker", 3)))
	g.flexTo("2")
	g.die("worker-2")
	g.pass(5 * time.Second)
	g.flexTo("3") // the index is not free yet
	if g.dir.Target != nil {
		t.Fatal("asked again before the last flex was over")
	}
	g.pass(registry.DefaultTimes().Lost + 10*time.Second)
	if got := g.lostOf("worker-2"); len(got) != 1 {
		t.Fatal("its index does not become free")
	}
	g.want(registry.ActRun, 1)
	if g.dir.Target["worker"] != 3 {
		t.Fatalf("directive %+v", g.dir)
	}
}

// Where another component's processes are told of the gang, or restart with it, its flex is a new generation.
func TestFlexRestartsWhoIsTold(t *testing.T) {
	f := factsOf(untold("free", 2), component("worker", "worker", 2, registry.ScopeGang))
	g := running(t, f)
	g.ask(registry.AskFlex, "flex", map[string]string{"free": "1"})
	g.want(registry.ActRun, 1)
	g.leave("free-1")
	g.pass(10 * time.Second)
	g.ask(registry.AskFlex, "flex", map[string]string{"worker": "1"})
	g.want(registry.ActWait, 2)
}

// A replacement on another host, or with other ports, takes its place while the others run.
func TestReplacementElsewhere(t *testing.T) {
	g := running(t, factsOf(untold("worker", 3)))
	g.leave("worker-1")
	g.join("worker-1", "second", "h9")
	g.pass(10 * time.Second)
	g.want(registry.ActRun, 1)
	g.wantRows("worker-0@inc-worker-0", "worker-1@inc-worker-1", "worker-2@inc-worker-2") // its ports are not known yet
	g.publish("worker-1")
	g.pass(10 * time.Second)
	g.want(registry.ActRun, 1)
	g.wantRows("worker-0@inc-worker-0", "worker-1@second", "worker-2@inc-worker-2")
	g.ack("worker-1")
	g.pass(time.Minute)
	g.want(registry.ActRun, 1)
}

// Where a setting of other processes names its hosts, a replacement elsewhere restarts those too.
func TestReplacementElsewhereOfAKnownHost(t *testing.T) {
	known := untold("worker", 3)
	known.Moves = false
	g := running(t, factsOf(known))
	g.flexTo("4") // its newcomers are no replacements
	g.join("worker-3", "new", "h9")
	g.publish("worker-3")
	g.pass(5 * time.Second)
	g.want(registry.ActRun, 1)
	g.wantRows("worker-0@inc-worker-0", "worker-1@inc-worker-1", "worker-2@inc-worker-2", "worker-3@new")
	g.ack("worker-3")
	g.leave("worker-1")
	g.join("worker-1", "second", "h9")
	g.publish("worker-1")
	g.pass(10 * time.Second)
	g.want(registry.ActWait, 2)
}

// A newcomer's failure ends its flex, whatever has been written into the directive since; one of the flex before does
// not.
func TestNewcomerOfAFlexFails(t *testing.T) {
	g := running(t, factsOf(untold("worker", 2)))
	for range 2 {
		g.flexTo("3")
		g.join("worker-2", "new", "h9")
		g.pass(5 * time.Second)
		if g.dir.Target == nil {
			t.Fatalf("given up before the newcomer has failed: %s", g.dir.Why)
		}
		g.failFinal("worker-2", 1)
		again := g.dir
		again.Seq, again.Why = again.Seq+1, "written again"
		g.write(g.view.DirectiveIndex, again)
		g.pass(5 * time.Second)
		if g.dir.Target != nil || g.dir.Counts["worker"] != 2 {
			t.Fatalf("directive %+v", g.dir)
		}
		g.want(registry.ActRun, 1)
	}
}

// What the conductor read of an index before it was taken away does not tell whether its process still runs.
func TestRemovedIndexIsReadAgain(t *testing.T) {
	g := running(t, factsOf(untold("worker", 1)))
	g.flexTo("2")
	g.join("worker-1", "new", "h9")
	g.publish("worker-1")
	g.pass(5 * time.Second) // it is read, and not acknowledged yet
	g.ack("worker-1")
	g.settle()
	g.flexTo("1")
	if len(g.asks) != 0 {
		t.Fatalf("%v stands although its counts are in force", g.asks)
	}
	g.flexTo("2")
	if g.dir.Target != nil {
		t.Fatal("asked again while the removed process runs")
	}
	g.leave("worker-1")
	g.pass(5 * time.Second)
	if g.dir.Target["worker"] != 2 {
		t.Fatalf("directive %+v", g.dir)
	}
}
