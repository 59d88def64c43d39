package conductor_test

import (
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

func inPlace() conductor.Facts {
	return factsOf(component("ps", "ps", 1, registry.ScopeInstance), component("worker", "worker", 2, registry.ScopeInstance),
		component("board", "service", 1, registry.ScopeInstance))
}

func trio() []string { return []string{"ps-0", "worker-0", "worker-1"} }

// relaunch lets a new agent take the index at the old address, and join the generation that runs.
func (g *gang) relaunch(name, inc string) {
	r := g.records[in(name)]
	g.die(name)
	g.join(name, inc, r.Addr)
	m := g.records[in(name)].Member
	m.Address, m.Ports, m.Budget = r.Address, r.Ports, registry.Budget{Used: r.Budget.Used + 1}
	g.put(in(name), m)
	g.ack(name)
}

// came says since when the conducting agent has known the gang.
func (g *gang) came(ago time.Duration) { g.c.Came = g.now.Add(-ago) }

// wantAnew expects the next generation, and that nothing was charged for it.
func (g *gang) wantAnew(used int) {
	g.t.Helper()
	g.want(registry.ActWait, 2)
	if g.dir.Why != "all agents were relaunched" || g.dir.First != "" || g.dir.Budget.Used != 0 {
		g.t.Errorf("got why %q, first %q, budget %+v", g.dir.Why, g.dir.First, g.dir.Budget)
	}
	for _, name := range trio() {
		if got := g.records[in(name)].Budget.Used; got != used {
			g.t.Errorf("budget used by %s: got %d, want %d", name, got, used)
		}
		g.ack(name)
	}
	g.settle()
	g.want(registry.ActRun, 2)
	if got := g.roster.Rows[0].Inc; got != g.records[in("ps-0")].Inc {
		g.t.Errorf("got %s in the roster, want the new one", got)
	}
	g.pass(time.Hour)
	g.want(registry.ActRun, 2) // once
}

func TestAllLaunchedAnew(t *testing.T) {
	expiry := registry.DefaultTimes().Expiry()
	for name, do := range map[string]func(*gang){
		"at once": func(g *gang) {
			for _, n := range trio() {
				g.relaunch(n, "new-"+n)
			}
			g.newConductor("new-ps-0")
		},
		"one after the other, proved dead": func(g *gang) {
			g.relaunch("ps-0", "new-ps-0")
			g.newConductor("new-ps-0") // it still sees the live keys of the other two
			for _, n := range []string{"worker-1", "worker-0"} {
				g.pass(expiry / 4)
				g.want(registry.ActRun, 1)
				g.relaunch(n, "new-"+n)
			}
			g.pass(3 * time.Second) // no ready key was missed: the records tell
		},
		"one after the other, long after their sessions have ended": func(g *gang) {
			g.relaunch("worker-0", "new-worker-0")
			g.newConductor("new-worker-0")
			g.pass(expiry / 2)
			g.die("ps-0")
			g.die("worker-1")
			g.pass(5 * time.Minute) // most of the gang is away
			g.want(registry.ActRun, 1)
			g.relaunch("ps-0", "new-ps-0")
			g.pass(registry.DefaultTimes().Lost - time.Second) // one is
			g.want(registry.ActRun, 1)
			g.relaunch("worker-1", "new-worker-1")
			g.pass(3 * time.Second)
		},
		"under a newcomer without an index": func(g *gang) {
			g.newConductor("somebody")
			g.came(time.Second)
			for _, n := range trio() {
				g.relaunch(n, "new-"+n)
				g.settle()
			}
			g.pass(3 * time.Second)
		},
		"after the conductor has had trouble": func(g *gang) {
			g.relaunch("ps-0", "new-ps-0")
			g.newConductor("new-ps-0")
			g.pass(expiry - time.Second)
			g.view.Trouble = time.Second // a new leader gives every session its whole time again
			g.run()
			g.pass(expiry - time.Second)
			g.relaunch("worker-0", "new-worker-0")
			g.relaunch("worker-1", "new-worker-1")
			g.pass(3 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := running(t, inPlace())
			do(g)
			g.settle()
			g.wantAnew(1)
		})
	}
}

// TestAllLeft: everybody had TERM; whoever comes first forms the gang anew, before the others are there.
func TestAllLeft(t *testing.T) {
	g := running(t, inPlace())
	for _, n := range trio() {
		g.leave(n)
	}
	g.newConductor("new-worker-1")
	g.join("worker-1", "new-worker-1", "hworker-1")
	g.settle()
	g.want(registry.ActWait, 2)
	g.join("ps-0", "new-ps-0", "hps-0")
	g.join("worker-0", "new-worker-0", "hworker-0")
	g.wantAnew(0)
}

func TestNotAllLaunchedAnew(t *testing.T) {
	expiry := registry.DefaultTimes().Expiry()
	for name, do := range map[string]func(*gang){
		"the conductor dies and a member takes over": func(g *gang) {
			g.die("worker-0")
			g.newConductor("inc-worker-1")
			g.settle()
			g.relaunch("worker-0", "new")
		},
		"the conductor dies and its successor takes over": func(g *gang) {
			g.relaunch("worker-0", "new")
			g.newConductor("new")
			g.came(0)
		},
		"all are replaced one by one, the conductor last, which steps down": func(g *gang) {
			for _, n := range []string{"worker-0", "worker-1"} {
				g.relaunch(n, "new-"+n)
				g.settle()
			}
			g.leave("ps-0")
			g.newConductor("new-worker-0")
			g.came(time.Second)
			g.c.Handed = true
			g.relaunch("ps-0", "new-ps-0")
		},
		"all are replaced one by one under one conductor": func(g *gang) {
			for _, n := range trio() {
				g.pass(time.Minute)
				g.relaunch(n, "new-"+n)
				g.settle()
			}
		},
		"all are replaced at once under the conductor that formed the gang": func(g *gang) {
			for _, n := range trio() {
				g.relaunch(n, "new-"+n)
			}
		},
		"all are replaced under one that took over": func(g *gang) {
			g.relaunch("worker-0", "new")
			g.newConductor("new")
			g.pass(expiry + time.Second)
			for _, n := range trio() {
				g.relaunch(n, "newer-"+n)
				g.settle()
			}
		},
		"all have been replaced, and then the conductor dies": func(g *gang) {
			for _, n := range trio() {
				g.pass(time.Minute)
				g.relaunch(n, "new-"+n)
				g.settle()
			}
			g.relaunch("ps-0", "newer")
			g.newConductor("new-worker-0")
			g.came(2 * time.Minute)
		},
		"the one that is left has a result": func(g *gang) {
			g.end("worker-0") // its agent stays
			g.relaunch("ps-0", "new-ps-0")
			g.relaunch("worker-1", "new-worker-1")
			g.newConductor("new-ps-0")
		},
		"one may come back": func(g *gang) {
			g.relaunch("ps-0", "new-ps-0")
			g.relaunch("worker-0", "new-worker-0")
			g.die("worker-1")
			g.newConductor("new-ps-0")
			g.pass(time.Minute)
			g.live[in("worker-1")], g.ready[in("worker-1")] = true, 1
			g.pass(time.Minute)
			g.relaunch("worker-1", "new-worker-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := running(t, inPlace())
			do(g)
			g.pass(5 * time.Minute)
			g.want(registry.ActRun, 1)
		})
	}
	t.Run("alone", func(t *testing.T) {
		g := running(t, factsOf(component("worker", "worker", 1, registry.ScopeInstance)))
		g.relaunch("worker-0", "new")
		g.newConductor("new")
		g.pass(5 * time.Minute)
		g.want(registry.ActRun, 1)
	})
}

// TestResultsStandWhenLaunchedAnew: what has ended stays so, in the next generation too.
func TestResultsStandWhenLaunchedAnew(t *testing.T) {
	g := running(t, inPlace())
	g.end("worker-0")
	g.die("worker-0")
	g.relaunch("ps-0", "new-ps-0")
	g.relaunch("worker-1", "new-worker-1")
	g.newConductor("new-ps-0")
	g.settle()
	g.want(registry.ActWait, 2)
	g.ack("ps-0")
	g.ack("worker-1")
	g.settle()
	g.want(registry.ActRun, 2)
	if r, _ := g.roster.Row(in("worker-0")); !r.Done {
		t.Errorf("got row %+v, want it done", r)
	}
}

// TestTakingOverReadsLittle: once it is known that somebody is left, a new conductor reads nothing more.
func TestTakingOverReadsLittle(t *testing.T) {
	f := inPlace()
	f.Components = f.Components[:2] // services are looked after every 30 s
	g := running(t, f)
	g.relaunch("worker-0", "new")
	g.newConductor("new")
	n := g.reads
	g.pass(time.Hour)
	if got := g.reads - n; got > 20 {
		t.Errorf("got %d readings of records in an hour, want a few in the first %s", got, registry.DefaultTimes().Expiry())
	}
}
