package conductor_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func asynchronous() conductor.Facts {
	return factsOf(component("ps", "ps", 1, registry.ScopeInstance), component("worker", "worker", 3, registry.ScopeInstance),
		component("board", "service", 1, registry.ScopeInstance))
}

func synchronous() conductor.Facts {
	return factsOf(component("worker", "worker", 3, registry.ScopeGang))
}

func TestSealWaitsForAllButServices(t *testing.T) {
	g := newGang(t, asynchronous())
	g.settle()
	for _, name := range []string{"worker-2", "worker-0", "ps-0"} {
		g.join(name, "i-"+name, "h1")
		g.ack(name)
		g.settle()
		g.want(registry.ActWait, 1)
	}
	g.join("worker-1", "i-worker-1", "h2")
	g.settle()
	g.want(registry.ActWait, 1)
	g.ack("worker-1")
	g.settle()
	g.want(registry.ActRun, 1)
	if n := len(g.roster.Rows); n != 4 {
		t.Errorf("got %d rows without the service, want 4", n)
	}
	if g.dir.Roster.ID == "" || g.dir.By != "c1" || g.dir.Seq != 2 {
		t.Errorf("got directive %+v", g.dir)
	}
}

func TestSealPutsServicesLast(t *testing.T) {
	f := factsOf(component("board", "service", 1, registry.ScopeInstance), component("worker", "worker", 2, registry.ScopeGang))
	g := running(t, f)
	var got []string
	for _, r := range g.roster.Rows {
		got = append(got, r.Instance.String())
	}
	if want := []string{"worker-0", "worker-1", "board-0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got rows %v, want %v", got, want)
	}
	if r := g.roster.Rows[2]; r.Rank != 2 || r.Addr == "" {
		t.Errorf("got service row %+v", r)
	}
}

func TestSealTakesTheCommonStep(t *testing.T) {
	type all = map[registry.Instance]registry.Checkpoint
	type folders = map[string]registry.Here
	own := func(steps ...int64) registry.Checkpoint { return kept(false, steps...) }
	shared := func(steps ...int64) registry.Checkpoint { return kept(true, steps...) }
	local := func(steps ...int64) registry.Checkpoint {
		c := kept(true, steps...)
		for i := range c.Steps {
			c.Steps[i].SHA256 = ""
		}
		return c
	}
	for _, tc := range []struct {
		name string
		rule string
		of   all
		here folders
		want *int64
		why  string
	}{
		{"nobody has one", "", nil, nil, nil, ""},
		{"nobody has one any more", "", all{in("worker-0"): own(), in("worker-1"): own()}, nil, nil, ""},
		{"one saves for all", "", all{in("worker-1"): own(1, 2)}, nil, new(int64(2)), ""},
		{"one saves, all must", conductor.RanksAll, all{in("worker-1"): own(1, 2)}, nil, new(registry.NoStep), "worker-0 has none, worker-1 has 1 2, worker-2 has none"},
		{"one has none", "", all{in("worker-0"): own(1), in("worker-1"): own(1)}, nil, new(registry.NoStep), "worker-0 has 1, worker-1 has 1, worker-2 has none"},
		{"one never has any", conductor.RanksSome, all{in("worker-0"): own(1), in("worker-1"): own(1)}, nil, new(int64(1)), ""},
		{"one has lost its last", conductor.RanksSome, all{in("worker-0"): own(1), in("worker-1"): own()}, nil, new(registry.NoStep), "worker-0 has 1, worker-1 has none"},
		{"each its own", conductor.RanksEach, all{in("worker-0"): own(1), in("worker-1"): own(2)}, nil, nil, ""},
		{"the newest of all", "", all{in("worker-0"): own(10, 20, 30), in("worker-1"): own(10, 20), in("worker-2"): own(20, 30)}, nil, new(int64(20)), ""},
		{"stored by one for all", "", all{in("worker-0"): shared(10, 20)}, nil, new(int64(20)), ""},
		{"stored by one, then by another", "", all{in("worker-0"): shared(10, 20), in("worker-2"): shared(30)}, nil, new(int64(30)), ""},
		{"of those some have their own", "", all{in("worker-0"): shared(10, 20), in("worker-1"): own(10)}, nil, new(int64(10)), ""},
		{
			"a copy that another found to be bad", "",
			all{in("worker-0"): shared(10, 20), in("worker-2"): {Bad: []registry.BadCopy{{SHA256: "sum", URI: "of 20"}, {URI: "of 10", SHA256: "another sum"}}}},
			nil, new(int64(10)), "",
		},
		{
			"nothing in common", "",
			all{in("worker-0"): own(10, 11, 12, 13), in("worker-1"): own(20), in("worker-2"): own(30)},
			nil,
			new(registry.NoStep), "worker-0 has … 11 12 13, worker-1 has 20, worker-2 has 30",
		},
		{
			"in folders alone", "", nil,
			folders{"worker-0": {Steps: []int64{5, 6}}, "worker-1": {Steps: []int64{4, 5}}, "worker-2": {Steps: []int64{5}}},
			new(int64(5)), "",
		},
		{
			"some in folders, not stored yet", "",
			all{in("worker-0"): own(5), in("worker-1"): own(5), in("worker-2"): own(5)},
			folders{"worker-0": {Steps: []int64{6}}, "worker-1": {Steps: []int64{6}}, "worker-2": {Steps: []int64{6, 7}}},
			new(int64(6)), "",
		},
		{
			"what was seen by chance does not count where the folder tells", "",
			all{in("worker-0"): local(1, 3), in("worker-1"): local(2, 4), in("worker-2"): local(2)},
			folders{"worker-0": {Shared: true, Steps: []int64{3, 4}}, "worker-1": {Shared: true, Steps: []int64{3, 4}}, "worker-2": {Shared: true, Steps: []int64{3, 4}}},
			new(int64(4)), "",
		},
		{
			"a host without the folder of the others", "", nil,
			folders{"worker-0": {Shared: true, Steps: []int64{3, 4}}, "worker-1": {Shared: true, Steps: []int64{3, 4}}, "worker-2": {Shared: true}},
			new(int64(4)), "",
		},
		{
			"a folder that cannot be looked at", "", nil,
			folders{"worker-0": {Steps: []int64{40, 50}}, "worker-1": {Steps: []int64{50}}, "worker-2": {Unknown: true}},
			new(int64(50)), "",
		},
		{
			"of one that cannot be looked at, what is stored counts", "",
			all{in("worker-2"): own(40)},
			folders{"worker-0": {Steps: []int64{40, 50}}, "worker-1": {Steps: []int64{40, 50}}, "worker-2": {Unknown: true}},
			new(int64(40)), "",
		},
		{
			"one that cannot be looked at is no reason to begin anew", "",
			all{in("worker-2"): own(30)},
			folders{"worker-0": {Steps: []int64{40, 50}}, "worker-1": {Steps: []int64{40, 50}}, "worker-2": {Unknown: true}},
			new(int64(50)), "",
		},
		{
			"the others have none in common", "", nil,
			folders{"worker-0": {Steps: []int64{40}}, "worker-1": {Steps: []int64{50}}, "worker-2": {Unknown: true}},
			new(registry.NoStep), "worker-0 has 40, worker-1 has 50",
		},
		{
			"each host's folder is another", "", nil,
			folders{"worker-0": {Shared: true, Steps: []int64{3, 4}}, "worker-1": {Shared: true, Steps: []int64{3}}, "worker-2": {Shared: true, Steps: []int64{2}}},
			new(registry.NoStep), "worker-0 has 3 4, worker-1 has 3, worker-2 has 2",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := synchronous()
			for i := range f.Components {
				f.Components[i].Ranks = tc.rule
			}
			g := newGang(t, f)
			g.steps = tc.of
			g.settle()
			g.here = tc.here
			g.all()
			g.want(registry.ActRun, 1)
			if got := g.dir.Resume; !reflect.DeepEqual(got, tc.want) || !reflect.DeepEqual(g.roster.Resume, tc.want) || g.dir.FromBeginning != tc.why {
				t.Errorf("got %v, %q, want %v, %q", got, g.dir.FromBeginning, tc.want, tc.why)
			}
		})
	}
}

// A host to which a container comes back has a folder from before: what its gang has given up since does not count.
func TestSealKnowsAnOldFolder(t *testing.T) {
	g := running(t, synchronous())
	for range 2 {
		g.fail("worker-2", 3)
		g.settle()
		g.pass(10 * time.Second)
		if g.dir.Gen == 2 {
			g.all()
		}
	}
	g.want(registry.ActWait, 3)
	g.steps = map[registry.Instance]registry.Checkpoint{in("worker-0"): kept(false, 20, 25, 30), in("worker-1"): kept(false, 20, 25, 30), in("worker-2"): kept(false, 20, 25)}
	g.here = map[string]registry.Here{"worker-2": {Gen: 1, Steps: []int64{20, 30}}}
	g.all()
	g.want(registry.ActRun, 3)
	if got := g.dir.Resume; got == nil || *got != 25 {
		t.Errorf("resumes from %v, want 25: step 30 of that folder is of a branch that was given up", got)
	}
}

func TestBarrierTimeoutNamesTheMissing(t *testing.T) {
	g := newGang(t, asynchronous())
	g.settle()
	g.join("ps-0", "a", "h1")
	g.ack("ps-0")
	g.join("worker-1", "b", "h2")
	g.join("worker-2", "c", "h3")
	g.leave("worker-2")
	g.settle()
	g.pass(30*time.Minute - time.Second)
	g.want(registry.ActWait, 1)
	g.pass(time.Second)
	g.wantVerdict(registry.Failed, registry.ClassTimeout, "worker-0",
		"3 of 4 instances were not ready within 1800 s: worker-0 (never joined), worker-1 (joined on h2, still staging), worker-2 (left, not replaced)")
}

func TestGangRestartsUntilTheBudgetIsSpent(t *testing.T) {
	g := running(t, synchronous())
	for gen := 1; gen <= 5; gen++ {
		g.fail("worker-2", 3)
		g.settle()
		g.want(registry.ActWait, gen+1)
		if g.dir.Budget.Used != gen || g.dir.First != "worker-2" {
			t.Fatalf("got budget %+v, first %s", g.dir.Budget, g.dir.First)
		}
		g.pass(10 * time.Second)
		g.all()
		g.want(registry.ActRun, gen+1)
	}
	g.fail("worker-2", 3)
	g.settle()
	g.wantVerdict(registry.Failed, registry.ClassApp, "worker-2", "worker-2 exited with 3 after 5 restarts in 300 s")
}

func TestGangBudgetWindowSlides(t *testing.T) {
	g := running(t, synchronous())
	for gen := 1; gen <= 12; gen++ {
		g.fail("worker-2", 3)
		g.settle()
		g.want(registry.ActWait, gen+1)
		g.all()
		g.pass(61 * time.Second)
	}
}

func TestGangBudgetRefillsWithTheCheckpoint(t *testing.T) {
	f := synchronous()
	f.GangBudget = conductor.BudgetRule{Max: 1, RefillCheckpoint: true}
	g := running(t, f)
	for gen := range 4 {
		g.steps = map[registry.Instance]registry.Checkpoint{in("worker-0"): {Steps: []registry.CheckpointStep{{Step: int64(gen + 1)}}}}
		g.fail("worker-1", 1)
		g.settle()
		g.want(registry.ActWait, gen+2)
		g.all()
	}
	g.fail("worker-1", 1)
	g.settle()
	g.wantVerdict(registry.Failed, registry.ClassApp, "worker-1", "worker-1 exited with 1 after 1 restart")
}

func TestFreeClassesChargeNothing(t *testing.T) {
	for _, class := range []registry.Class{registry.ClassLauncher, registry.ClassRegistry, registry.ClassFlex, registry.ClassMismatch} {
		t.Run(string(class), func(t *testing.T) {
			f := synchronous()
			f.GangBudget.Max = 0
			g := running(t, f)
			g.report("worker-0", registry.PhaseFailed, registry.MemberExit{Class: class})
			g.settle()
			g.want(registry.ActWait, 2)
			if g.dir.Budget.Used != 0 {
				t.Errorf("got budget %+v", g.dir.Budget)
			}
		})
	}
}

// On one machine the clock tells who failed first; clocks of several machines may differ, and the registry's order counts.
func TestGangFirstCause(t *testing.T) {
	for _, tt := range []struct{ boot, first, why string }{
		{"one", "worker-1", "worker-1 was killed by SIGKILL"},
		{"another", "worker-0", "worker-0 exited with 1"},
	} {
		g := running(t, synchronous())
		for name, boot := range map[string]string{"worker-0": "one", "worker-1": tt.boot} {
			m := g.records[in(name)].Member
			m.Boot = boot
			g.put(in(name), m)
		}
		g.report("worker-0", registry.PhaseFailed, registry.MemberExit{Code: new(1), At: t0.Add(2 * time.Second)})
		g.report("worker-1", registry.PhaseFailed, registry.MemberExit{Signal: 9, At: t0.Add(time.Second)})
		g.settle()
		g.want(registry.ActWait, 2)
		if g.dir.First != tt.first || g.dir.Why != tt.why || g.dir.Budget.Used != 1 {
			t.Errorf("%s: got first %s, why %q, budget %+v", tt.boot, g.dir.First, g.dir.Why, g.dir.Budget)
		}
	}
}

func TestNeverScopeEndsAtTheFirstFailure(t *testing.T) {
	f := factsOf(component("worker", "worker", 2, registry.ScopeNever))
	g := running(t, f)
	g.fail("worker-1", 7)
	g.settle()
	g.wantVerdict(registry.Failed, registry.ClassApp, "worker-1", "worker-1 exited with 7")
}

func TestInstanceFailures(t *testing.T) {
	for _, tc := range []struct {
		name  string
		facts conductor.Facts
		do    func(*gang)
		check func(*gang)
	}{
		{"beyond its budget", asynchronous(), func(g *gang) {
			r := g.records[in("worker-2")]
			r.Budget = registry.Budget{Used: 5}
			g.put(in("worker-2"), r.Member)
			g.report("worker-2", registry.PhaseFailed, registry.MemberExit{Code: new(3), Class: registry.ClassApp, Why: "no such file", Final: true})
		}, func(g *gang) {
			g.wantVerdict(registry.Failed, registry.ClassApp, "worker-2", "worker-2 exited with 3 after 5 restarts in 300 s: no such file")
		}},
		{"a ps beyond its budget", asynchronous(), func(g *gang) { g.failFinal("ps-0", 1) }, func(g *gang) {
			g.wantVerdict(registry.Failed, registry.ClassApp, "ps-0", "ps-0 exited with 1")
		}},
		{
			"an evaluator beyond its budget", factsOf(component("worker", "worker", 1, registry.ScopeInstance), component("evaluator", "evaluator", 1, registry.ScopeInstance)),
			func(g *gang) { g.failFinal("evaluator-0", 1) }, func(g *gang) {
				g.wantVerdict(registry.Failed, registry.ClassApp, "evaluator-0", "evaluator-0 exited with 1")
			},
		},
		{"a service never", asynchronous(), func(g *gang) { g.failFinal("board-0", 1); g.pass(time.Minute) }, func(g *gang) { g.want(registry.ActRun, 1) }},
		{"a failure for good in memory", asynchronous(), func(g *gang) {
			g.report("worker-0", registry.PhaseFailed, registry.MemberExit{Signal: 9, Class: registry.ClassOOM, Final: true})
		}, func(g *gang) {
			g.wantVerdict(registry.Failed, registry.ClassOOM, "worker-0", "worker-0 ran out of memory")
			if g.dir.Verdict.Advice != "raise yarn.memory of worker, let it grow with muster.memory.autoscale, or make the program use less" {
				g.t.Errorf("got advice %q", g.dir.Verdict.Advice)
			}
		}},
		{"a full disk", asynchronous(), func(g *gang) {
			g.report("worker-0", registry.PhaseFailed, registry.MemberExit{
				Class: registry.ClassData, Final: true, Why: "did not start: write w/model: no space left on device",
			})
		}, func(g *gang) {
			g.wantVerdict(registry.Failed, registry.ClassData, "worker-0",
				"worker-0 failed: did not start: write w/model: no space left on device")
			if g.dir.Verdict.Advice != "free space on that file system, or give --work-dir a folder on another" {
				g.t.Errorf("got advice %q", g.dir.Verdict.Advice)
			}
		}},
		{"a host without GPUs", asynchronous(), func(g *gang) {
			g.report("worker-0", registry.PhaseFailed, registry.MemberExit{
				Class: registry.ClassGPU, Final: true, Why: "did not start: 1 GPU asked for: no GPU here: no NVIDIA driver",
			})
		}, func(g *gang) {
			g.wantVerdict(registry.Failed, registry.ClassGPU, "worker-0",
				"worker-0 failed: did not start: 1 GPU asked for: no GPU here: no NVIDIA driver")
			if g.dir.Verdict.Advice != "ask for no GPUs, or launch the app where muster doctor shows some" {
				g.t.Errorf("got advice %q", g.dir.Verdict.Advice)
			}
		}},
		{"a port that another has", asynchronous(), func(g *gang) {
			g.report("worker-0", registry.PhaseFailed, registry.MemberExit{
				Code: new(1), Class: registry.ClassNetwork, Final: true, Why: "address already in use",
			})
		}, func(g *gang) {
			g.wantVerdict(registry.Failed, registry.ClassNetwork, "worker-0", "worker-0 exited with 1: address already in use")
			if !strings.HasPrefix(g.dir.Verdict.Advice, "have the program listen at a port that muster chose ($MUSTER_PORT)") {
				g.t.Errorf("got advice %q", g.dir.Verdict.Advice)
			}
		}},
		{"a command that is not there", asynchronous(), func(g *gang) {
			g.report("worker-0", registry.PhaseFailed, registry.MemberExit{Code: new(127), Class: registry.ClassApp, Final: true})
		}, func(g *gang) {
			g.wantVerdict(registry.Failed, registry.ClassApp, "worker-0", "worker-0 exited with 127")
			if !strings.HasPrefix(g.dir.Verdict.Advice, "a command or a shared library was not found: see muster logs ") {
				g.t.Errorf("got advice %q", g.dir.Verdict.Advice)
			}
		}},
		{"a command that may not be executed", asynchronous(), func(g *gang) {
			g.report("worker-0", registry.PhaseFailed, registry.MemberExit{Code: new(126), Class: registry.ClassApp, Final: true})
		}, func(g *gang) {
			if !strings.HasPrefix(g.dir.Verdict.Advice, "a command was found that may not be executed: see muster logs ") {
				g.t.Errorf("got advice %q", g.dir.Verdict.Advice)
			}
		}},
		{"an ended ps counts for nothing", asynchronous(), func(g *gang) { g.end("ps-0"); g.pass(time.Hour) }, func(g *gang) { g.want(registry.ActRun, 1) }},
		{"a TERM waits for the replacement", asynchronous(), func(g *gang) { g.leave("worker-1"); g.pass(time.Minute) }, func(g *gang) {
			g.want(registry.ActRun, 1)
			g.pass(29 * time.Minute)
			g.wantVerdict(registry.Failed, registry.ClassTimeout, "worker-1", "worker-1 was not replaced within 1800 s: left, not replaced")
		}},
		{"replaced at the same address", asynchronous(), func(g *gang) {
			host := g.records[in("worker-1")].Addr
			g.die("worker-1")
			g.settle()
			g.join("worker-1", "new", host)
			g.settle()
			g.pass(10 * time.Second)
			g.ack("worker-1")
		}, func(g *gang) { g.want(registry.ActRun, 1) }},
		{"replaced elsewhere", asynchronous(), func(g *gang) {
			g.die("worker-1")
			g.settle()
			g.join("worker-1", "new", "elsewhere")
			g.settle()
			g.pass(2 * time.Second)
		}, func(g *gang) {
			g.want(registry.ActWait, 2)
			if g.dir.Budget.Used != 0 || g.dir.Why != "worker-1 moved to elsewhere" {
				g.t.Errorf("got budget %+v, why %q", g.dir.Budget, g.dir.Why)
			}
		}},
		{"on its host at other ports", asynchronous(), func(g *gang) {
			host := g.records[in("worker-1")].Addr
			g.die("worker-1")
			g.join("worker-1", "new", host)
			r := g.records[in("worker-1")]
			r.Address = host + ":9"
			g.put(in("worker-1"), r.Member)
		}, func(g *gang) { g.want(registry.ActWait, 2) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := running(t, tc.facts)
			tc.do(g)
			g.settle()
			tc.check(g)
		})
	}
}

func TestSuccess(t *testing.T) {
	workers := func(change func(*conductor.Facts)) conductor.Facts {
		f := factsOf(component("chief", "chief", 1, registry.ScopeInstance), component("ps", "ps", 1, registry.ScopeInstance), component("worker", "worker", 3, registry.ScopeInstance))
		change(&f)
		return f
	}
	for _, tc := range []struct {
		name  string
		facts conductor.Facts
		end   []string
		fail  []string
		cause string // "": goes on
	}{
		{"all chief and workers", workers(func(*conductor.Facts) {}), []string{"chief-0", "worker-0", "worker-1", "worker-2"}, nil, "all 4 instances of chief, worker are done"},
		{"not without the chief", workers(func(*conductor.Facts) {}), []string{"ps-0", "worker-0", "worker-1", "worker-2"}, nil, ""},
		{"minSucceeded reached", workers(func(f *conductor.Facts) { f.Components[2].MinSucceeded = new(2) }), []string{"worker-0", "worker-2"}, nil, "2 worker ended with 0, 2 were asked for"},
		{"minSucceeded not reached", workers(func(f *conductor.Facts) { f.Components[2].MinSucceeded = new(2) }), []string{"worker-0"}, nil, ""},
		{"all done, neither count reached", workers(func(f *conductor.Facts) { f.Components[2].MinFailed = nil }), []string{"chief-0", "worker-0"}, []string{"worker-1", "worker-2"}, "all 4 instances of chief, worker are done; failed: worker-1 (exited with 1), worker-2 (exited with 1)"},
		{"one failure of two", workers(func(f *conductor.Facts) { f.Components[2].MinFailed = new(2) }), nil, []string{"worker-1"}, ""},
		{"total.minSucceeded, whoever they are", workers(func(f *conductor.Facts) { f.Total.MinSucceeded = 2 }), []string{"ps-0", "worker-2"}, nil, "2 of 2 instances asked for have ended with 0"},
		{"total.minSucceeded, a failure is none", workers(func(f *conductor.Facts) { f.Total.MinSucceeded = 2; f.Components[2].MinFailed = nil }), []string{"worker-0"}, []string{"worker-1"}, ""},
		{"total.minFailed not reached", workers(func(f *conductor.Facts) { f.Total.MinFailed = 3; f.Components[2].MinFailed = nil }), []string{"chief-0"}, []string{"worker-0", "worker-1"}, ""},
		{"total share not reached", workers(func(f *conductor.Facts) { f.Total.FailedShare = 0.5; f.Components[2].MinFailed = nil }), []string{"chief-0", "worker-0", "worker-1"}, []string{"worker-2"}, "all 4 instances of chief, worker are done; failed: worker-2 (exited with 1)"},
		{"no chief nor worker: all", factsOf(component("ps", "ps", 2, registry.ScopeInstance)), []string{"ps-0", "ps-1"}, nil, "all 2 instances of ps are done"},
		{"gang", synchronous(), []string{"worker-0", "worker-1", "worker-2"}, nil, "all 3 instances of worker are done"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := running(t, tc.facts)
			for _, name := range tc.end {
				g.want(registry.ActRun, 1)
				g.end(name)
				g.settle()
			}
			for _, name := range tc.fail {
				g.want(registry.ActRun, 1)
				g.failFinal(name, 1)
				g.settle()
			}
			if tc.cause == "" {
				g.pass(2 * time.Hour)
				g.want(registry.ActRun, 1)
				return
			}
			g.wantVerdict(registry.Succeeded, registry.ClassNone, "", tc.cause)
		})
	}
}

func TestMinFailedTwo(t *testing.T) {
	f := asynchronous()
	f.Components[1].MinFailed = new(2)
	g := running(t, f)
	g.failFinal("worker-2", 4)
	g.settle()
	g.want(registry.ActRun, 1)
	g.failFinal("worker-0", 5)
	g.settle()
	g.wantVerdict(registry.Failed, registry.ClassApp, "worker-2", "worker-2 exited with 4; 2 instances of worker have failed")
}

func TestEndedStaysEndedInTheInstanceScope(t *testing.T) {
	g := running(t, asynchronous())
	g.end("worker-0")
	g.die("worker-2")
	g.join("worker-2", "new", "elsewhere")
	g.settle()
	g.want(registry.ActWait, 2)
	for _, name := range []string{"ps-0", "worker-1", "worker-2"} {
		g.ack(name)
	}
	g.settle()
	g.want(registry.ActRun, 2)
	if r, _ := g.roster.Row(in("worker-0")); !r.Done || r.Addr == "" {
		t.Errorf("got row %+v, want it done, with its address", r)
	}
	g.end("worker-1")
	g.end("worker-2")
	g.settle()
	g.wantVerdict(registry.Succeeded, registry.ClassNone, "", "all 3 instances of worker are done")
}

func TestResultsOfAGangBelongToTheirGeneration(t *testing.T) {
	g := running(t, synchronous())
	g.end("worker-0")
	g.fail("worker-1", 1)
	g.settle()
	g.want(registry.ActWait, 2)
	g.pass(time.Minute)
	g.ack("worker-1")
	g.ack("worker-2")
	g.settle()
	g.want(registry.ActWait, 2)
	g.ack("worker-0")
	g.settle()
	g.want(registry.ActRun, 2)
}

func TestLost(t *testing.T) {
	grace := registry.DefaultTimes().Lost
	wantPhase := func(g *gang, name string, want registry.Phase) {
		g.t.Helper()
		if got := g.records[in(name)].Phase; got != want {
			g.t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	// dying is a gang whose worker-1 is lost in a second.
	dying := func(t *testing.T) *gang {
		g := running(t, synchronous())
		g.die("worker-1")
		g.settle()
		g.pass(grace - time.Second)
		wantPhase(g, "worker-1", registry.PhaseReady)
		return g
	}
	t.Run("after the grace, then rebuilt", func(t *testing.T) {
		g := dying(t)
		g.pass(time.Second)
		wantPhase(g, "worker-1", registry.PhaseLost)
		g.want(registry.ActWait, 2)
		if g.dir.Budget.Used != 1 || g.dir.Why != "worker-1 was lost with its agent on hworker-1" {
			t.Errorf("got %+v", g.dir)
		}
	})
	for name, event := range map[string]func(*gang){
		"a member that is back": func(g *gang) {
			g.live[in("worker-1")], g.ready[in("worker-1")] = true, 1
			g.settle()
			g.die("worker-1")
			g.settle()
		},
		"a new conductor": func(g *gang) { g.newConductor("c2"); g.settle() },
	} {
		t.Run(name+" starts the clock anew", func(t *testing.T) {
			g := dying(t)
			event(g)
			g.pass(grace - time.Second)
			wantPhase(g, "worker-1", registry.PhaseReady)
			g.pass(time.Second)
			wantPhase(g, "worker-1", registry.PhaseLost)
		})
	}
	t.Run("a silence of the registry prolongs the clock by its length", func(t *testing.T) {
		g := dying(t)
		for range 3 {
			g.now = g.now.Add(7 * time.Second)
			g.view.Trouble = 7 * time.Second
			g.run()
			wantPhase(g, "worker-1", registry.PhaseReady)
		}
		g.pass(999 * time.Millisecond)
		wantPhase(g, "worker-1", registry.PhaseReady)
		g.pass(time.Millisecond)
		wantPhase(g, "worker-1", registry.PhaseLost)
	})
	t.Run("however often it is silent for a moment, a dead member is lost", func(t *testing.T) {
		g := running(t, synchronous())
		g.die("worker-1")
		g.settle()
		for range int(grace / (5 * time.Second)) {
			g.pass(5 * time.Second)
			g.view.Trouble = 10 * time.Millisecond
			g.run()
		}
		g.pass(time.Second)
		wantPhase(g, "worker-1", registry.PhaseLost)
	})
	for inc, want := range map[string]registry.Phase{"inc-worker-1": registry.PhaseLost, "older": registry.PhaseReady} {
		t.Run("the operator declares gone "+inc, func(t *testing.T) {
			g := running(t, synchronous())
			g.die("worker-1")
			args := map[string]string{"instance": "worker-1", "inc": inc}
			g.asks = []registry.Ask{{Kind: registry.AskGone, ID: "1", Args: args}}
			g.settle()
			wantPhase(g, "worker-1", want)
			if want == registry.PhaseLost {
				g.want(registry.ActWait, 2)
			}
			if g.settle(); len(g.asks) != 0 {
				t.Errorf("got asks %v, want none", g.asks)
			}
		})
	}
	t.Run("a service", func(t *testing.T) {
		g := running(t, asynchronous())
		g.die("board-0")
		g.pass(grace + time.Minute)
		wantPhase(g, "board-0", registry.PhaseLost)
		g.want(registry.ActRun, 1)
	})
}

func TestReplacedInAGangRebuilds(t *testing.T) {
	g := running(t, synchronous())
	g.die("worker-0")
	g.join("worker-0", "new", "hworker-0")
	g.settle()
	g.want(registry.ActWait, 2)
	if g.dir.Budget.Used != 1 || g.dir.Why != "worker-0 was replaced" {
		t.Errorf("got budget %+v, why %q", g.dir.Budget, g.dir.Why)
	}
}

func TestInterrupted(t *testing.T) {
	g := running(t, synchronous())
	for _, name := range []string{"worker-0", "worker-1", "worker-2"} {
		g.leave(name)
	}
	g.settle()
	g.want(registry.ActWait, 2)
	if g.dir.Budget.Used != 0 || g.dir.Verdict != nil {
		t.Fatalf("got %+v, want no verdict and nothing charged", g.dir)
	}
	g.newConductor("c2")
	for _, name := range []string{"worker-0", "worker-1", "worker-2"} {
		g.join(name, "again-"+name, "h")
		g.ack(name)
	}
	g.settle()
	g.want(registry.ActRun, 2)
}

func TestStop(t *testing.T) {
	for _, act := range []registry.Act{registry.ActWait, registry.ActRun} {
		t.Run(string(act), func(t *testing.T) {
			g := newGang(t, synchronous())
			g.settle()
			if act == registry.ActRun {
				g.all()
			}
			g.asks = []registry.Ask{{Kind: registry.AskStop, ID: "1", By: "stop", Args: map[string]string{"who": "ann", "grace": "3"}}}
			g.settle()
			g.wantVerdict(registry.Stopped, registry.ClassStopped, "", "stopped by ann")
			if g.dir.StopGrace != 3 || g.dir.Verdict.By != "stop" {
				t.Errorf("got grace %g, by %q", g.dir.StopGrace, g.dir.Verdict.By)
			}
		})
	}
}

func TestFlex(t *testing.T) {
	ask := func(g *gang, args map[string]string) {
		g.asks = []registry.Ask{{Kind: registry.AskFlex, ID: "1", Args: args}}
		g.settle()
	}
	t.Run("up", func(t *testing.T) {
		g := running(t, asynchronous())
		ask(g, map[string]string{"worker": "5"})
		g.want(registry.ActRun, 1)
		if g.dir.Target["worker"] != 5 || g.dir.Counts["worker"] != 3 || len(g.asks) != 0 {
			t.Fatalf("got %+v, asks %v", g.dir, g.asks)
		}
		g.join("worker-3", "x", "h")
		g.pass(5 * time.Second)
		g.want(registry.ActRun, 1)
		g.join("worker-4", "y", "h")
		g.publish("worker-3")
		g.pass(5 * time.Second)
		g.want(registry.ActRun, 1) // worker-4 still stages
		g.publish("worker-4")
		g.pass(5 * time.Second)
		g.want(registry.ActWait, 2)
		if g.dir.Counts["worker"] != 5 || g.dir.Target != nil || g.dir.Budget.Used != 0 {
			t.Fatalf("got %+v", g.dir)
		}
		g.all()
		g.want(registry.ActRun, 2)
	})
	t.Run("down", func(t *testing.T) {
		g := running(t, asynchronous())
		ask(g, map[string]string{"worker": "1"})
		g.want(registry.ActWait, 2)
		g.ack("ps-0")
		g.ack("worker-0")
		g.leave("worker-1")
		g.leave("worker-2")
		g.pass(5 * time.Second)
		g.want(registry.ActRun, 2)
	})
	t.Run("services only", func(t *testing.T) {
		g := running(t, asynchronous())
		ask(g, map[string]string{"board": "2"})
		g.want(registry.ActRun, 1)
		if g.dir.Counts["board"] != 2 || g.dir.Target != nil || len(g.asks) != 0 {
			t.Errorf("got %+v, asks %v", g.dir, g.asks)
		}
	})
	for name, args := range map[string]map[string]string{
		"to the same": {"worker": "3"}, "of nothing": {"x": "3"}, "by a word": {"worker": "many"},
	} {
		t.Run(name, func(t *testing.T) {
			g := running(t, asynchronous())
			n := len(g.directives)
			ask(g, args)
			if len(g.asks) != 0 || len(g.directives) != n {
				t.Errorf("got asks %v, %d directives, want it dropped", g.asks, len(g.directives)-n)
			}
		})
	}
}

// TestWaitingReadsLittle: a waiting conductor reads the missing every two seconds, not more.
func TestWaitingReadsLittle(t *testing.T) {
	g := newGang(t, asynchronous())
	g.settle()
	g.pass(10 * time.Minute)
	if g.reads > 302 {
		t.Errorf("got %d reads of records in 600 s, want at most one in 2 s", g.reads)
	}
}

// TestRunningReadsNothing: while all is well only the watches cost something.
func TestRunningReadsNothing(t *testing.T) {
	g := running(t, synchronous())
	n := g.reads
	g.settle()
	if len(g.last) != 0 || g.reads != n {
		t.Errorf("got %#v", g.last)
	}
}

// A gang that begins anew again and again, each time after it has saved something, spends its account: that was no progress.
func TestAnewIsNoProgress(t *testing.T) {
	for name, step := range map[string]func(round int64) int64{
		"to the same step":   func(int64) int64 { return 10 },
		"to a greater one":   func(round int64) int64 { return 10 * round },
		"each its own saved": func(round int64) int64 { return 1000 + round },
	} {
		t.Run(name, func(t *testing.T) {
			f := synchronous()
			f.GangBudget = conductor.BudgetRule{Max: 3, RefillCheckpoint: true}
			for i := range f.Components {
				f.Components[i].Ranks = conductor.RanksAll
			}
			g := running(t, f)
			for round := int64(1); g.dir.Act != registry.ActStop; round++ {
				if round > 4 {
					t.Fatalf("round %d goes on: %+v", round, g.dir.Budget)
				}
				g.steps = map[registry.Instance]registry.Checkpoint{in("worker-0"): kept(false, step(round))}
				g.again()
			}
			if g.dir.Verdict.Outcome != registry.Failed {
				t.Errorf("got %+v", g.dir.Verdict)
			}
		})
	}
}

// One that has gone on from a step after it began anew is told from then on by what is newer, however far it was before.
func TestProgressAfterAnew(t *testing.T) {
	f := synchronous()
	f.GangBudget = conductor.BudgetRule{Max: 2, RefillCheckpoint: true}
	g := running(t, f)
	for _, round := range []struct {
		steps []int64 // the newest of each worker
		used  int
	}{{[]int64{1000, 1000, 1000}, 1}, {[]int64{2000, 2001, 2000}, 1}, {[]int64{10, 10, 10}, 2}, {[]int64{20, 20, 20}, 1}, {[]int64{30, 30, 30}, 1}} {
		g.steps = map[registry.Instance]registry.Checkpoint{}
		for i, step := range round.steps {
			g.steps[registry.Instance{Component: "worker", Index: i}] = kept(false, step)
		}
		g.again()
		if g.want(registry.ActRun, g.dir.Gen); g.dir.Budget.Used != round.used {
			t.Errorf("%v: got %+v, want %d used", round.steps, g.dir.Budget, round.used)
		}
	}
}

// again lets a worker fail, and the gang form anew if it may.
func (g *gang) again() {
	g.fail("worker-1", 1)
	g.settle()
	g.pass(time.Minute)
	if g.dir.Act == registry.ActWait {
		g.all()
	}
}
