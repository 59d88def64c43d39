package conductor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// ordered are a ps, two workers after it, an evaluator after the workers, and a board.
func ordered(scope string) conductor.Facts {
	f := factsOf(component("ps", "ps", 2, scope), component("worker", "worker", 2, scope),
		component("evaluator", "evaluator", 1, scope), component("board", "service", 1, registry.ScopeInstance))
	f.Components[1].After = []conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}}
	f.Components[2].After = []conductor.Requirement{{Component: "worker", State: conductor.OrderStarted}, {Component: "ps", State: conductor.OrderInstalled}}
	return f
}

func (g *gang) wantReleased(names ...string) {
	g.t.Helper()
	if !slices.Equal(g.dir.Released, names) {
		g.t.Fatalf("got %v released (%s), want %v", g.dir.Released, g.dir.Why, names)
	}
}

func (g *gang) wantWhy(want string) {
	g.t.Helper()
	if g.dir.Why != want {
		g.t.Fatalf("got %q, want %q", g.dir.Why, want)
	}
}

func TestComponentsAreReleasedInTheirOrder(t *testing.T) {
	g := running(t, ordered(registry.ScopeInstance))
	g.wantReleased("ps", "board")
	g.wantWhy("waiting for ps to have started: ps-0, ps-1; worker to have started: worker-0, worker-1")
	g.up("ps-0")
	g.wantReleased("ps", "board")
	g.up("ps-1")
	g.wantReleased("ps", "worker", "board")
	g.wantWhy("waiting for worker to have started: worker-0, worker-1")
	g.want(registry.ActRun, 1)
	g.up("worker-1")
	g.end("worker-0") // so quickly that nobody saw it up
	g.pass(5 * time.Second)
	g.wantReleased()
	g.wantWhy("all are ready")
	g.want(registry.ActRun, 1)
	n := g.reads
	g.pass(time.Minute)
	if g.reads-n > 31 { // the ended worker's, every two seconds
		t.Errorf("got %d reads of records in 60 s when all are released", g.reads-n)
	}
}

func TestWithoutOrdersAllAreReleasedAtOnce(t *testing.T) {
	g := running(t, asynchronous())
	g.wantReleased()
	g.wantWhy("all are ready")
}

func TestSealReleasesWhatHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		after  conductor.Requirement
		before func(*gang)
		want   []string
	}{
		"installed, at the barrier":        {conductor.Requirement{Component: "ps", State: conductor.OrderInstalled}, nil, nil},
		"started, with no instances":       {conductor.Requirement{Component: "none", State: conductor.OrderStarted}, nil, nil},
		"an unknown component":             {conductor.Requirement{Component: "gone", State: conductor.OrderStarted}, nil, nil},
		"started":                          {conductor.Requirement{Component: "ps", State: conductor.OrderStarted}, nil, []string{"ps", "none", "board"}},
		"a service, not installed":         {conductor.Requirement{Component: "board", State: conductor.OrderInstalled}, nil, []string{"ps", "none", "board"}},
		"a service, installed":             {conductor.Requirement{Component: "board", State: conductor.OrderInstalled}, func(g *gang) { g.join("board-0", "b", "h"); g.publish("board-0") }, nil},
		"a service, installed, lost":       {conductor.Requirement{Component: "board", State: conductor.OrderInstalled}, func(g *gang) { g.join("board-0", "b", "h"); g.publish("board-0"); g.leave("board-0") }, []string{"ps", "none", "board"}},
		"a service, only installed":        {conductor.Requirement{Component: "board", State: conductor.OrderStarted}, func(g *gang) { g.join("board-0", "b", "h"); g.publish("board-0") }, []string{"ps", "none", "board"}},
		"a service, up before":             {conductor.Requirement{Component: "board", State: conductor.OrderStarted}, func(g *gang) { g.join("board-0", "b", "h"); g.up("board-0") }, nil},
		"oneself, installed":               {conductor.Requirement{Component: "worker", State: conductor.OrderInstalled}, nil, nil},
		"ended before all the others came": {conductor.Requirement{Component: "ps", State: conductor.OrderStarted}, func(g *gang) { g.join("ps-0", "p", "h"); g.ack("ps-0"); g.end("ps-0") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := factsOf(component("ps", "ps", 1, registry.ScopeInstance), component("worker", "worker", 1, registry.ScopeInstance),
				component("none", "evaluator", 0, registry.ScopeInstance), component("board", "service", 1, registry.ScopeInstance))
			f.Components[1].After = []conductor.Requirement{tc.after}
			g := newGang(t, f)
			g.settle()
			if tc.before != nil {
				tc.before(g)
			}
			for _, name := range []string{"ps-0", "worker-0"} {
				if g.records[in(name)].Phase != registry.PhaseEnded {
					g.join(name, "i-"+name, "h")
					g.ack(name)
				}
			}
			g.pass(5 * time.Second)
			g.want(registry.ActRun, 1)
			g.wantReleased(tc.want...)
		})
	}
}

func TestEveryGenerationStartsInOrder(t *testing.T) {
	g := running(t, ordered(registry.ScopeGang))
	g.up("ps-0")
	g.up("ps-1")
	g.wantReleased("ps", "worker", "board")
	g.fail("ps-0", 1)
	g.settle()
	g.want(registry.ActWait, 2)
	g.wantReleased()
	g.all()
	g.want(registry.ActRun, 2)
	g.wantReleased("ps", "board") // that they were up was in generation 1
}

func TestANewConductorGoesOnWithTheOrder(t *testing.T) {
	g := running(t, ordered(registry.ScopeInstance))
	g.up("ps-0")
	g.newConductor("c2")
	g.pass(5 * time.Second)
	g.wantReleased("ps", "board")
	g.up("ps-1")
	g.wantReleased("ps", "worker", "board")
	g.newConductor("c3")
	g.pass(5 * time.Second)
	g.wantReleased("ps", "worker", "board")
	if g.dir.By != "c2" {
		t.Errorf("got a directive by %s, want none by the third conductor", g.dir.By)
	}
}

func TestWhatIsReleasedStaysReleased(t *testing.T) {
	g := running(t, ordered(registry.ScopeInstance))
	g.up("ps-0")
	g.up("ps-1")
	g.wantReleased("ps", "worker", "board")
	g.die("ps-0")
	g.join("ps-0", "another", "hps-0")
	g.ack("ps-0")
	g.pass(5 * time.Second)
	g.want(registry.ActRun, 1)
	g.wantReleased("ps", "worker", "board")
	g.up("worker-0")
	g.up("worker-1")
	g.wantReleased()
}

// TestAReplacementMustComeUpAgain: as long as the next are not released, its predecessor's word counts no more.
func TestAReplacementMustComeUpAgain(t *testing.T) {
	g := running(t, ordered(registry.ScopeInstance))
	g.up("ps-0")
	g.die("ps-0")
	g.settle()
	g.join("ps-0", "another", "hps-0")
	g.pass(5 * time.Second)
	g.ack("ps-0")
	g.up("ps-1")
	g.wantReleased("ps", "board")
	g.up("ps-0")
	g.wantReleased("ps", "worker", "board")
}

func TestNobodyComesUp(t *testing.T) {
	g := running(t, ordered(registry.ScopeInstance))
	g.pass(29 * time.Minute)
	g.up("ps-0")
	g.pass(time.Minute)
	g.wantVerdict(registry.Failed, registry.ClassTimeout, "ps-1",
		"worker, evaluator was not released within 1800 s: waiting for ps to have started: ps-1; worker to have started: worker-0, worker-1")
}

func TestEachReleaseHasItsTime(t *testing.T) {
	g := running(t, ordered(registry.ScopeInstance))
	g.up("ps-0")
	g.pass(29 * time.Minute)
	g.up("ps-1")
	g.pass(29 * time.Minute)
	g.want(registry.ActRun, 1)
	g.up("worker-0")
	g.up("worker-1")
	g.wantReleased()
	g.pass(2 * time.Hour)
	g.want(registry.ActRun, 1)
}

// TestOneThatFailedForGood: it has been up, or nobody may wait for it in vain without a word.
func TestOneThatFailedForGood(t *testing.T) {
	f := ordered(registry.ScopeInstance)
	f.Components[0].MinFailed = nil
	g := running(t, f)
	g.up("ps-0")
	g.failFinal("ps-0", 1)
	g.failFinal("ps-1", 1)
	g.pass(time.Minute)
	g.wantReleased("ps", "board")
	g.pass(30 * time.Minute)
	if v := g.dir.Verdict; v == nil || v.Class != registry.ClassTimeout || !strings.Contains(v.Cause, "waiting for ps to have started: ps-1;") {
		t.Errorf("got %+v", v)
	}
}

func TestKnottedOrdersEndTheRun(t *testing.T) {
	for name, tc := range map[string]struct {
		ps, worker []conductor.Requirement
		knotted    bool
	}{
		"each other":            {[]conductor.Requirement{{Component: "worker", State: conductor.OrderStarted}}, []conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}}, true},
		"itself":                {[]conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}}, nil, true},
		"installed is no knot":  {[]conductor.Requirement{{Component: "worker", State: conductor.OrderInstalled}}, []conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}}, false},
		"nobody there, no knot": {[]conductor.Requirement{{Component: "none", State: conductor.OrderStarted}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := factsOf(component("ps", "ps", 1, registry.ScopeGang), component("worker", "worker", 1, registry.ScopeGang), component("none", "worker", 0, registry.ScopeGang))
			f.Components[0].After, f.Components[1].After = tc.ps, tc.worker
			f.Components[2].After = []conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}}
			g := newGang(t, f)
			g.settle()
			if !tc.knotted {
				g.all()
				g.want(registry.ActRun, 1)
				return
			}
			if v := g.dir.Verdict; v == nil || v.Class != registry.ClassDefinition || !strings.Contains(v.Cause, "ps") {
				t.Errorf("got %+v in %s, want a verdict that names ps", v, g.dir.Act)
			}
		})
	}
}

func TestAwaited(t *testing.T) {
	f := ordered(registry.ScopeGang)
	var got []string
	for _, c := range f.Components {
		if f.Awaited(c.Name) {
			got = append(got, c.Name)
		}
	}
	if want := []string{"ps", "worker"}; !slices.Equal(got, want) {
		t.Errorf("got %v awaited, want %v", got, want)
	}
}

// TestManyAreWaitedFor: who waits is told of ten of them, and they are read at once, not one by one.
func TestManyAreWaitedFor(t *testing.T) {
	f := factsOf(component("ps", "ps", 200, registry.ScopeInstance), component("worker", "worker", 1, registry.ScopeInstance))
	f.Components[1].After = []conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}}
	g := running(t, f)
	if !strings.HasSuffix(g.dir.Why, "ps-9, and 190 more") {
		t.Errorf("got %q", g.dir.Why)
	}
	n := g.reads
	g.pass(time.Minute)
	if g.reads-n > 32 {
		t.Errorf("got %d reads in 60 s, want one in 2 s", g.reads-n)
	}
	for k := range 200 {
		r := g.records[in(fmt.Sprint("ps-", k))]
		r.Up = 1
		g.put(in(fmt.Sprint("ps-", k)), r.Member)
	}
	g.pass(5 * time.Second)
	g.wantReleased()
}

// An app that is launched anew as a whole starts in order again. In its old generation everything is released: there a
// worker would start before its ps is up.
func TestLaunchedAnewStartsInOrder(t *testing.T) {
	f := ordered(registry.ScopeInstance)
	f.Components = f.Components[:2]
	g := running(t, f)
	g.up("ps-0")
	g.up("ps-1")
	g.wantReleased() // all
	for _, name := range []string{"ps-0", "ps-1", "worker-0", "worker-1"} {
		g.relaunch(name, "new-"+name)
	}
	g.newConductor("new-ps-0")
	g.settle()
	g.want(registry.ActWait, 2)
	g.all()
	g.want(registry.ActRun, 2)
	g.wantReleased("ps")
}
