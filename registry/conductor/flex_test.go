package conductor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

// flexTo asks for so many workers.
func (g *gang) flexTo(workers string) {
	g.t.Helper()
	g.asks = append(g.asks, registry.Ask{Kind: registry.AskFlex, ID: "flex-" + workers, Args: map[string]string{"worker": workers}})
	g.settle()
}

func twoWorkers(t *testing.T) *gang {
	return running(t, factsOf(component("worker", "worker", 2, registry.ScopeGang)))
}

// A newcomer whose host dies while it is staged is given up like any member, and another takes its index.
func TestNewcomerOfAFlexDies(t *testing.T) {
	g := twoWorkers(t)
	g.flexTo("3")
	g.join("worker-2", "first", "h3")
	g.pass(5 * time.Second)
	g.die("worker-2")
	g.pass(registry.DefaultTimes().Lost + 10*time.Second)
	if got := g.lostOf("worker-0", "worker-1", "worker-2"); len(got) != 1 || got[0] != "worker-2" {
		t.Fatalf("lost: %v, want worker-2", got)
	}
	g.want(registry.ActRun, 1)
	g.join("worker-2", "second", "h4")
	g.publish("worker-2")
	g.pass(10 * time.Second)
	g.want(registry.ActWait, 2)
	g.all()
	g.want(registry.ActRun, 2)
	if len(g.roster.Rows) != 3 || g.roster.Rows[2].Inc != "second" {
		t.Errorf("roster %+v", g.roster.Rows)
	}
}

// A dead member's record is nobody who has joined: the gang is not stopped for it.
func TestFlexOverADeadRecord(t *testing.T) {
	g := running(t, factsOf(component("worker", "worker", 3, registry.ScopeGang)))
	g.die("worker-2") // its host; its record stays as it was
	g.flexTo("2")
	g.want(registry.ActWait, 2)
	g.ack("worker-0")
	g.ack("worker-1")
	g.pass(5 * time.Second)
	g.want(registry.ActWait, 2) // its process may live: nobody has proved that it is gone
	g.pass(registry.DefaultTimes().Lost + 10*time.Second)
	g.want(registry.ActRun, 2)
	g.flexTo("3")
	g.want(registry.ActRun, 2)
	if got := g.lostOf("worker-2"); len(got) != 1 {
		t.Error("its index does not become free")
	}
	g.join("worker-2", "next", "h4")
	g.publish("worker-2")
	g.pass(10 * time.Second)
	g.want(registry.ActWait, 3)
}

// A flex of which a newcomer fails for good is given up at once. Asked again, it waits for another: the old failure does
// not count.
func TestFlexOfAFailureIsGivenUp(t *testing.T) {
	g := twoWorkers(t)
	g.flexTo("3")
	g.join("worker-2", "bad", "h3")
	g.failFinal("worker-2", 1)
	g.pass(10 * time.Second)
	g.want(registry.ActRun, 1)
	if want := "flex given up: worker-2 exited with 1; worker stays 2"; g.dir.Target != nil || g.dir.Why != want {
		t.Fatalf("target %v, why %q, want %q", g.dir.Target, g.dir.Why, want)
	}
	g.flexTo("3")
	g.pass(time.Minute)
	if len(g.dir.Target) == 0 {
		t.Fatalf("given up for the failure of before: %+v", g.dir)
	}
	g.join("worker-2", "good", "h3")
	g.publish("worker-2")
	g.pass(10 * time.Second)
	g.want(registry.ActWait, 2)
}

// A flex for which nobody comes is given up, and leaves the gang as it was.
func TestFlexIsGivenUp(t *testing.T) {
	g := twoWorkers(t)
	g.flexTo("3")
	if len(g.dir.Target) == 0 {
		t.Fatalf("no target: %+v", g.dir)
	}
	g.join("worker-2", "slow", "h3") // it comes, and is never staged
	g.pass(29 * time.Minute)
	if len(g.dir.Target) == 0 {
		t.Fatalf("given up too early: %+v", g.dir)
	}
	g.pass(2 * time.Minute)
	g.want(registry.ActRun, 1)
	if g.dir.Target != nil || g.dir.Counts["worker"] != 2 || len(g.asks) != 0 {
		t.Errorf("directive %+v, asks %v", g.dir, g.asks)
	}
	if want := "flex given up: not staged after 1800 s: worker-2 (joined on h3, still staging); worker stays 2"; g.dir.Why != want {
		t.Errorf("why: %q, want %q", g.dir.Why, want)
	}
	g.pass(time.Hour)
	g.want(registry.ActRun, 1)
	g.flexTo("4") // asked again, it has its whole time
	g.pass(29 * time.Minute)
	if g.dir.Target["worker"] != 4 || strings.Contains(g.dir.Why, "given up") {
		t.Errorf("the second flex: %+v", g.dir)
	}
}

// The generation after a flex down starts only when the processes of the removed indexes are gone.
func TestRemovedIndexIsWaitedFor(t *testing.T) {
	g := running(t, factsOf(component("worker", "worker", 3, registry.ScopeGang)))
	g.flexTo("2")
	g.want(registry.ActWait, 2)
	g.ack("worker-0")
	g.ack("worker-1")
	g.pass(10 * time.Second)
	g.want(registry.ActWait, 2)
	g.leave("worker-2")
	g.pass(10 * time.Second)
	g.want(registry.ActRun, 2)
}

// A gang without any member would neither end nor grow again: nobody is left to conduct it.
func TestFlexToNobodyIsRefused(t *testing.T) {
	g := twoWorkers(t)
	g.flexTo("0")
	g.want(registry.ActRun, 1)
	if len(g.asks) != 0 {
		t.Errorf("asks %+v stay", g.asks)
	}
}
