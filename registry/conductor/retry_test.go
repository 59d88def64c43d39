package conductor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// alone restarts nothing by itself: muster.retry has all to do.
func alone(workers int, change func(*conductor.Facts)) conductor.Facts {
	f := factsOf(component("worker", "worker", workers, registry.ScopeNever))
	change(&f)
	return f
}

func TestTotalFailures(t *testing.T) {
	for _, tc := range []struct {
		name    string
		workers int
		total   conductor.TotalFacts
		fatal   int // which failure is the end; 0: none of all
	}{
		{"a number", 4, conductor.TotalFacts{MinFailed: 2}, 2},
		{"half of four", 4, conductor.TotalFacts{FailedShare: 0.5}, 2},
		{"half of three, rounded up", 3, conductor.TotalFacts{FailedShare: 0.5}, 2},
		{"a share that is no whole number to a computer", 30, conductor.TotalFacts{FailedShare: 0.1}, 3},
		{"one at least", 3, conductor.TotalFacts{FailedShare: 0.001}, 1},
		{"all", 3, conductor.TotalFacts{FailedShare: 1}, 3},
		{"both: whichever is first", 4, conductor.TotalFacts{MinFailed: 1, FailedShare: 0.75}, 1},
		{"none", 2, conductor.TotalFacts{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := running(t, alone(tc.workers, func(f *conductor.Facts) { f.Total, f.Components[0].MinFailed = tc.total, nil }))
			for k := range tc.workers {
				g.want(registry.ActRun, 1)
				g.failFinal(fmt.Sprint("worker-", k), 3)
				g.settle()
				if k+1 == tc.fatal {
					cause := fmt.Sprintf("worker-0 exited with 3; %d of %d instances have failed", tc.fatal, tc.workers)
					g.wantVerdict(registry.Failed, registry.ClassApp, "worker-0", cause)
					return
				}
			}
			if tc.fatal != 0 || g.dir.Verdict == nil || g.dir.Verdict.Outcome != registry.Succeeded {
				t.Errorf("got verdict %+v, want success", g.dir.Verdict)
			}
		})
	}
}

// TestTotalLeavesOut: services and evaluators count neither as failures nor among all.
func TestTotalLeavesOut(t *testing.T) {
	evaluator := component("evaluator", "evaluator", 2, registry.ScopeNever)
	evaluator.Fails = false
	f := factsOf(component("worker", "worker", 2, registry.ScopeNever), evaluator, component("board", "service", 3, registry.ScopeInstance))
	f.Total.FailedShare, f.Components[0].MinFailed = 0.5, nil
	g := running(t, f)
	g.failFinal("evaluator-0", 1)
	g.failFinal("evaluator-1", 1)
	g.settle()
	g.want(registry.ActRun, 1)
	g.failFinal("worker-1", 4)
	g.settle()
	g.wantVerdict(registry.Failed, registry.ClassApp, "worker-1", "worker-1 exited with 4; 1 of 2 instances have failed")
}

func TestManyCasualties(t *testing.T) {
	g := running(t, alone(7, func(f *conductor.Facts) { f.Components[0].MinFailed = nil }))
	for k := range 6 {
		g.failFinal(fmt.Sprint("worker-", k), k+1)
	}
	g.end("worker-6")
	g.settle()
	g.wantVerdict(registry.Succeeded, registry.ClassNone, "", "all 7 instances of worker are done; "+
		"failed: worker-0 (exited with 1), worker-1 (exited with 2), worker-2 (exited with 3), and 3 more")
}

// TestRetryable is the table of what is tried again: with a count, with PAI's rule, and after everything.
func TestRetryable(t *testing.T) {
	code := func(n int) registry.MemberExit { return registry.MemberExit{Code: &n, Class: registry.ClassApp} }
	signal := func(n int) registry.MemberExit {
		return registry.MemberExit{Signal: n, Class: registry.ClassApp}
	}
	class := func(c registry.Class) registry.MemberExit { return registry.MemberExit{Class: c} }
	const never, counted, free = "never", "counted", "not counted"
	for _, tc := range []struct {
		name string
		exit registry.MemberExit
		want string // by PAI's rule; without it what is not counted is counted
	}{
		{"exit code", code(1), counted},
		{"exit code 255", code(255), counted},
		{"INT", signal(2), free},
		{"QUIT", signal(3), free},
		{"ILL", signal(4), never},
		{"ABRT", signal(6), counted},
		{"BUS", signal(7), never},
		{"FPE", signal(8), never},
		{"KILL", signal(9), free},
		{"SEGV", signal(11), counted},
		{"PIPE", signal(13), never},
		{"TERM", signal(15), free},
		{"KILL by a shell", code(137), free},
		{"ILL by a shell", code(132), never},
		{"no signal by a shell", code(160), counted},
		{"KILL for want of memory", registry.MemberExit{Signal: 9, Class: registry.ClassOOM}, never},
		{"gpu", class(registry.ClassGPU), free},
		{"host", class(registry.ClassHost), free},
		{"preempted", class(registry.ClassPreempted), free},
		{"network", class(registry.ClassNetwork), free},
		{"no such image", class(registry.ClassImage), never},
		{"image whose registry does not answer", registry.MemberExit{Class: registry.ClassImage, Passing: true}, free},
		{"data", class(registry.ClassData), counted},
		{"muster", class(registry.ClassMuster), counted},
		{"definition", class(registry.ClassDefinition), never},
		{"not permitted", class(registry.ClassNotPermitted), never},
	} {
		for _, pai := range []bool{true, false} {
			want := tc.want
			if !pai && want == free {
				want = counted
			}
			t.Run(fmt.Sprintf("%s, PAI %t", tc.name, pai), func(t *testing.T) {
				retry := func(n int) registry.Directive {
					g := running(t, alone(2, func(f *conductor.Facts) { f.Retry, f.RetryTransient = n, pai }))
					tc.exit.Final = true
					g.report("worker-1", registry.PhaseFailed, tc.exit)
					g.settle()
					return g.dir
				}
				for n, again := range map[int]bool{0: want == free, 1: want != never, conductor.RetryForever: want != never, conductor.RetryAlways: true} {
					d := retry(n)
					if got := d.Act == registry.ActWait && d.Gen == 2; got != again {
						t.Errorf("muster.retry %d: got generation %d %s (%s), formed anew: want %t", n, d.Gen, d.Act, d.Why, again)
						continue
					}
					if !again {
						continue
					}
					charged := want != free || n == conductor.RetryAlways
					if got := d.Retries; got.Gen != 2 || (got.Used == 1) != charged || (got.Free == 1) == charged {
						t.Errorf("muster.retry %d: got %+v, counted: want %t", n, got, charged)
					}
				}
			})
		}
	}
}

func TestRetry(t *testing.T) {
	two := func(f *conductor.Facts) { f.Retry = 2 }
	again := func(g *gang) {
		g.t.Helper()
		for _, i := range g.facts.Instances(g.dir) {
			g.ack(i.String())
		}
		g.pass(20 * time.Minute)
	}
	t.Run("everybody starts again, and it is counted", func(t *testing.T) {
		g := running(t, alone(2, two))
		g.end("worker-0")
		g.settle()
		g.failFinal("worker-1", 1)
		g.settle()
		g.want(registry.ActWait, 2)
		if want := "gang restarted after worker-1 exited with 1 (retry 1 of 2)"; g.dir.Why != want || g.dir.First != "worker-1" || g.dir.Verdict != nil {
			t.Errorf("got why %q, first %s, verdict %v, want %q", g.dir.Why, g.dir.First, g.dir.Verdict, want)
		}
		g.ack("worker-1")
		g.pass(time.Minute)
		g.want(registry.ActWait, 2) // what worker-0 came to was in the generation before
		g.ack("worker-0")
		g.settle()
		g.want(registry.ActRun, 2)
		g.newConductor("c2") // the count is not the conductor's own
		g.failFinal("worker-0", 1)
		g.settle()
		g.want(registry.ActWait, 3)
		if want := "gang restarted after worker-0 exited with 1 (retry 2 of 2, after a pause of 1 s)"; g.dir.Why != want {
			t.Errorf("got why %q, want %q", g.dir.Why, want)
		}
		again(g)
		g.want(registry.ActRun, 3)
		g.failFinal("worker-1", 6)
		g.settle()
		g.wantVerdict(registry.Failed, registry.ClassApp, "worker-1", "worker-1 exited with 6")
	})
	t.Run("results of the instance scope are stale as well", func(t *testing.T) {
		f := asynchronous()
		f.Retry = 1
		g := running(t, f)
		g.end("worker-0")
		g.failFinal("ps-0", 1)
		g.settle()
		g.want(registry.ActWait, 2)
		for _, name := range []string{"ps-0", "worker-1", "worker-2"} {
			g.ack(name)
		}
		g.pass(time.Minute)
		g.want(registry.ActWait, 2)
		g.ack("worker-0")
		g.settle()
		g.want(registry.ActRun, 2)
		if r, _ := g.roster.Row(in("worker-0")); r.Done {
			t.Errorf("got row %+v, want it at work", r)
		}
		g.end("worker-1")
		g.end("worker-2")
		g.pass(time.Minute)
		g.want(registry.ActRun, 2) // worker-0 has to end once more
		g.end("worker-0")
		g.settle()
		g.wantVerdict(registry.Succeeded, registry.ClassNone, "", "all 3 instances of worker are done")
	})
	t.Run("the gang's own budget comes first, and begins again", func(t *testing.T) {
		f := synchronous()
		f.Retry, f.GangBudget = 1, conductor.BudgetRule{Max: 1}
		g := running(t, f)
		for gen, want := range []registry.Budget{{Used: 1}, {}, {Used: 1}} {
			g.fail("worker-1", 1)
			g.settle()
			g.want(registry.ActWait, gen+2)
			if g.dir.Budget.Used != want.Used {
				t.Errorf("generation %d: got budget %+v, want %d used", g.dir.Gen, g.dir.Budget, want.Used)
			}
			again(g)
		}
		g.fail("worker-1", 1)
		g.settle()
		if g.dir.Act != registry.ActStop || g.dir.Retries.Used != 1 {
			t.Errorf("got generation %d %s, %+v, want the end", g.dir.Gen, g.dir.Act, g.dir.Retries)
		}
	})
	t.Run("without end", func(t *testing.T) {
		g := running(t, alone(2, func(f *conductor.Facts) { f.Retry = conductor.RetryForever }))
		last := 0.0
		for n := range 20 {
			g.failFinal("worker-1", 1)
			g.settle()
			g.want(registry.ActWait, n+2)
			if p := g.dir.Rest; p < last || p > 60 || n > 1 && p <= 1 {
				t.Fatalf("retry %d: pause %g s after %g s, want it to grow up to 60", n+1, p, last)
			}
			last = g.dir.Rest
			again(g)
		}
		g.end("worker-0")
		g.end("worker-1")
		g.settle()
		g.wantVerdict(registry.Succeeded, registry.ClassNone, "", "all 2 instances of worker are done")
	})
	t.Run("after a success as well, until muster stop", func(t *testing.T) {
		g := running(t, alone(1, func(f *conductor.Facts) { f.Retry = conductor.RetryAlways }))
		g.end("worker-0")
		g.settle()
		g.want(registry.ActWait, 2)
		if want := "gang restarted after all 1 instances of worker are done (retry 1)"; g.dir.Why != want {
			t.Errorf("got why %q, want %q", g.dir.Why, want)
		}
		again(g)
		g.failFinal("worker-0", 1)
		g.asks = []registry.Ask{{Kind: registry.AskStop, ID: "1", By: "stop"}}
		g.settle()
		g.wantVerdict(registry.Stopped, registry.ClassStopped, "", "stopped")
	})
	t.Run("a time that was set is over", func(t *testing.T) {
		for _, n := range []int{3, conductor.RetryForever, conductor.RetryAlways} {
			g := running(t, alone(1, func(f *conductor.Facts) { f.Retry, f.RetryTransient = n, true }))
			g.report("worker-0", registry.PhaseFailed, registry.MemberExit{Signal: 15, Class: registry.ClassTimeout, Final: true, Why: "not done after 3s (muster.timeout)"})
			g.settle()
			if v := g.dir.Verdict; v == nil || v.Class != registry.ClassTimeout {
				t.Errorf("muster.retry %d: got generation %d %s, want the end", n, g.dir.Gen, g.dir.Act)
			}
		}
	})
	t.Run("for want of memory, where there will be more", func(t *testing.T) {
		for _, grows := range []bool{true, false} {
			g := running(t, alone(2, func(f *conductor.Facts) { f.Retry, f.Components[0].Grows = 1, grows }))
			g.report("worker-1", registry.PhaseFailed, registry.MemberExit{Signal: 9, Class: registry.ClassOOM, Final: true})
			g.settle()
			if got := g.dir.Act == registry.ActWait && g.dir.Retries.Used == 1; got != grows {
				t.Errorf("memory grows %t: got generation %d %s (%s)", grows, g.dir.Gen, g.dir.Act, g.dir.Why)
			}
		}
	})
	t.Run("a barrier that did not open, with time for others", func(t *testing.T) {
		g := newGang(t, alone(2, func(f *conductor.Facts) { f.RetryTransient = true }))
		g.settle()
		g.join("worker-0", "a", "h")
		g.ack("worker-0")
		g.pass(30 * time.Minute)
		g.want(registry.ActWait, 2)
		if want := "gang restarted after 1 of 2 instances were not ready within 1800 s: worker-1 (never joined) (not counted, after a pause of 30 s)"; g.dir.Why != want {
			t.Errorf("got why %q, want %q", g.dir.Why, want)
		}
		g.join("worker-1", "b", "h")
		g.ack("worker-0")
		g.ack("worker-1")
		g.pass(29 * time.Second)
		g.want(registry.ActWait, 2)
		g.pass(time.Second)
		g.want(registry.ActRun, 2)
	})
	t.Run("one that died meanwhile has a fresh account", func(t *testing.T) {
		c := newClaimCase()
		c.gone()
		c.phase(registry.PhaseEnded)
		c.look.Member.Budget = registry.Budget{Used: 5, Step: 9}
		c.look.Directive.Gen, c.look.Directive.Act, c.look.Directive.Retries = 2, registry.ActWait, registry.Retries{Used: 1, Gen: 2}
		d, ok := c.decide().(conductor.Claim)
		if !ok || d.Proof != conductor.ProofRecord || d.Record.Budget.Used != 0 || d.Record.Budget.Step != 9 {
			t.Errorf("got %#v, want a claim with nothing used", d)
		}
	})
}
