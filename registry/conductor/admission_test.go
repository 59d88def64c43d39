package conductor_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// claimCase is a look at worker-1 that tests change.
type claimCase struct {
	look conductor.Snapshot
	me   conductor.Newcomer
	life conductor.Life
}

func newClaimCase() *claimCase {
	inst := in("worker-1")
	holder := registry.Member{
		Run: "r", Inc: "old", Addr: "10.0.0.1", Host: "h1", Process: registry.Process{Machine: "m1", Boot: "b1", PidNS: "n1", Pid: 7, Start: 70, Cgroup: "/muster/app/worker-1"}, Gen: 1, Phase: registry.PhaseReady, Attempt: 2, Ports: map[string]int{"p": 1},
		Budget: registry.Budget{Used: 1}, Origin: registry.Origin{Since: t0},
	}
	c := &claimCase{
		look: conductor.Snapshot{
			App: &registry.AppRecord{Run: "r", Digest: "d"}, AppIndex: 3,
			Directive:      &registry.Directive{Run: "r", Gen: 1, Act: registry.ActRun, Seq: 4, Counts: map[string]int{"worker": 2}},
			DirectiveIndex: 5, Instance: inst, Member: &holder, MemberIndex: 6, LiveSession: "s1", LiveInc: "old", LiveIndex: 7, Now: t0,
		},
		me: conductor.Newcomer{App: "app", Run: "r", Digest: "d", Instance: &inst, Facts: factsOf(component("worker", "worker", 2, registry.ScopeInstance))},
	}
	c.me.Member = registry.Member{Inc: "new", Addr: "10.0.0.2", Process: registry.Process{Machine: "m2", Boot: "b2", PidNS: "n2", Pid: 8, Start: 80}}
	return c
}

func (c *claimCase) here() { // on the holder's machine, boot and pid namespace
	c.me.Member.Addr, c.me.Member.Machine, c.me.Member.Boot, c.me.Member.PidNS = "10.0.0.1", "m1", "b1", "n1"
}

func (c *claimCase) gone() {
	c.look.LiveSession, c.look.LiveInc, c.look.LiveIndex = "", "", 0
}

func (c *claimCase) phase(p registry.Phase) { c.look.Member.Phase = p }

func (c *claimCase) gang() { c.me.Facts.Components[0].Scope = registry.ScopeGang }

func (c *claimCase) decide() conductor.Admission {
	return conductor.Admit(c.look, c.me, func(registry.Process) conductor.Life { return c.life })
}

func TestDecideProofs(t *testing.T) {
	for _, tc := range []struct {
		name  string
		set   func(*claimCase)
		proof conductor.Proof // "": none, it stands by
		evict string
		clear bool
	}{
		{"no record", func(c *claimCase) { c.gone(); c.look.Member, c.look.MemberIndex = nil, 0 }, conductor.ProofFree, "", false},
		{"left", func(c *claimCase) { c.gone(); c.phase(registry.PhaseLeft) }, conductor.ProofFree, "", false},
		{"lost", func(c *claimCase) { c.gone(); c.phase(registry.PhaseLost) }, conductor.ProofFree, "", false},
		{"lost, its process gone here", func(c *claimCase) {
			c.here()
			c.gone()
			c.phase(registry.PhaseLost)
			c.life = conductor.LifeDead
		}, conductor.ProofFree, "", true},
		{"lost, its process alive here", func(c *claimCase) {
			c.here()
			c.gone()
			c.phase(registry.PhaseLost)
			c.life = conductor.LifeAlive
		}, conductor.ProofFree, "", false},
		{"lost, but still live", func(c *claimCase) { c.phase(registry.PhaseLost) }, conductor.ProofNone, "", false},
		{"failed, its agent gone", func(c *claimCase) { c.gone(); c.phase(registry.PhaseFailed) }, conductor.ProofRecord, "", false},
		{"failed, its agent there", func(c *claimCase) { c.phase(registry.PhaseFailed) }, conductor.ProofNone, "", false},
		{"ended in an older generation of a gang", func(c *claimCase) {
			c.gone()
			c.gang()
			c.phase(registry.PhaseEnded)
			c.look.Directive.Gen, c.look.Directive.Act = 2, registry.ActWait
		}, conductor.ProofRecord, "", false},
		{"ended in an earlier run", func(c *claimCase) { c.gone(); c.phase(registry.PhaseEnded); c.look.Member.Run = "q" }, conductor.ProofRecord, "", false},
		{"ready in an earlier run, its session over", func(c *claimCase) { c.gone(); c.look.Member.Run = "q" }, conductor.ProofNone, "", false},
		{"its session over is no proof", func(c *claimCase) { c.gone() }, conductor.ProofNone, "", false},
		{"its process is gone here", func(c *claimCase) { c.here(); c.life = conductor.LifeDead }, conductor.ProofProcess, "s1", true},
		{"its process is gone here, its session over", func(c *claimCase) { c.here(); c.gone(); c.life = conductor.LifeDead }, conductor.ProofProcess, "", true},
		{"nothing is known of the process", func(c *claimCase) { c.here() }, conductor.ProofNone, "", false},
		{"another pid namespace", func(c *claimCase) { c.here(); c.me.Member.PidNS = "n9"; c.life = conductor.LifeDead }, conductor.ProofNone, "", false},
		{"no pid namespace known", func(c *claimCase) {
			c.here()
			c.me.Member.PidNS, c.look.Member.PidNS = "", ""
			c.life = conductor.LifeDead
		}, conductor.ProofNone, "", false},
		{"another boot", func(c *claimCase) { c.here(); c.me.Member.Boot = "b9" }, conductor.ProofBoot, "s1", false},
		{"another boot of a clone at another address", func(c *claimCase) { c.here(); c.me.Member.Boot, c.me.Member.Addr = "b9", "10.0.0.9" }, conductor.ProofNone, "", false},
		{"the same slot", func(c *claimCase) { c.look.Member.Slot, c.me.Member.Slot = "unit", "unit" }, conductor.ProofSlot, "s1", false},
		{"the same slot, but its process is alive here", func(c *claimCase) {
			c.here()
			c.look.Member.Slot, c.me.Member.Slot, c.life = "unit", "unit", conductor.LifeAlive
		}, conductor.ProofNone, "", false},
		{"the operator's word", func(c *claimCase) {
			c.look.Asks = []registry.Ask{{Kind: registry.AskGone, Args: map[string]string{"instance": "worker-1", "inc": "old"}}}
		}, conductor.ProofOperator, "s1", false},
		{"the operator's word, but it answers", func(c *claimCase) {
			c.look.Answers = true
			c.look.Asks = []registry.Ask{{Kind: registry.AskGone, Args: map[string]string{"instance": "worker-1", "inc": "old"}}}
		}, conductor.ProofNone, "", false},
		{"the operator's word on another", func(c *claimCase) {
			c.look.Asks = []registry.Ask{{Kind: registry.AskGone, Args: map[string]string{"instance": "worker-1", "inc": "older"}}}
		}, conductor.ProofNone, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClaimCase()
			c.me.Launcher = true
			tc.set(c)
			d := c.decide()
			if tc.proof == conductor.ProofNone {
				if _, ok := d.(conductor.Standby); !ok {
					t.Errorf("got %#v, want standby", d)
				}
				return
			}
			got, ok := d.(conductor.Claim)
			if !ok {
				t.Fatalf("got %#v, want a claim by %s", d, tc.proof)
			}
			if got.Proof != tc.proof || got.Evict != tc.evict || (got.Clear != nil) != tc.clear || got.MembersIndex != c.look.MemberIndex || got.DirectiveIndex != 5 {
				t.Errorf("got %+v, want proof %s, evict %q, clear %v", got, tc.proof, tc.evict, tc.clear)
			}
			if r := got.Record; r.Inc != "new" || r.Phase != registry.PhaseJoined || r.Gen != 0 || r.Run != "r" {
				if !(r.Phase == registry.PhaseFailed) {
					t.Errorf("got record %+v", r)
				}
			}
		})
	}
}

func TestDecideOtherwise(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*claimCase)
		want any // a decision's type, or an error's that refuses
	}{
		{"nobody founded it", func(c *claimCase) {
			c.look = conductor.Snapshot{Instance: in("worker-1"), Now: t0}
		}, conductor.Found{}},
		{"nobody founded it, and it would not have the index", func(c *claimCase) {
			c.look = conductor.Snapshot{Instance: in("worker-2"), Now: t0}
		}, &conductor.IndexError{}},
		{"nobody founded it, and the index may come with a flex", func(c *claimCase) {
			c.look, c.me.Launcher = conductor.Snapshot{Instance: in("worker-2"), Now: t0}, true
		}, conductor.Found{}},
		{"half of it is there", func(c *claimCase) { c.look.Directive = nil }, conductor.Retry{}},
		{"another definition", func(c *claimCase) { c.me.Digest = "e" }, &conductor.DigestError{}},
		{"other times", func(c *claimCase) {
			c.look.App.Times = c.me.Facts.Times.Agreed()
			c.look.App.Times.Lost++
		}, &conductor.TimesError{}},
		{"another build, with another fence", func(c *claimCase) {
			c.look.App.Times = c.me.Facts.Times.Agreed()
			c.look.App.Times.Fence.Stop++
		}, &conductor.TimesError{}},
		{"a run that said nothing of its fence", func(c *claimCase) {
			c.look.App.Times = c.me.Facts.Times.Agreed()
			c.look.App.Times.Fence = registry.FenceTimes{}
		}, conductor.Standby{}},
		{"too old a build", func(c *claimCase) { c.look.App.Proto = registry.Proto{Min: 2, Now: 2} }, &conductor.ProtoError{}},
		{"too old a build, and the run is over", func(c *claimCase) {
			c.look.App.Proto, c.me.Digest = registry.Proto{Min: 2, Now: 2}, "e"
			c.look.Directive.Verdict = &registry.Verdict{Run: "r"}
		}, &conductor.FinishedError{}},
		{"too old a build for the last run", func(c *claimCase) {
			c.look.App.Proto = registry.Proto{Min: 2, Now: 2}
			c.me.Run, c.me.NewRun, c.look.Directive.Verdict = "q", true, &registry.Verdict{Run: "r"}
		}, conductor.NewRun{}},
		{"an older build that may be mixed in", func(c *claimCase) { c.look.App.Proto = registry.Proto{Min: 1, Now: 2} }, conductor.Standby{}},
		{"too new a build", func(c *claimCase) { c.me.Speaks = registry.Proto{Min: 2, Now: 3} }, &conductor.ProtoError{}},
		{"a newer build", func(c *claimCase) {
			c.me.Speaks, c.me.Digest, c.me.Digests = registry.Proto{Min: 2, Now: 3}, "e", map[int]string{1: "d"}
			c.look.App.Proto = registry.Proto{Min: 1, Now: 2}
		}, conductor.Standby{}},
		{"a newer build with another definition", func(c *claimCase) {
			c.me.Speaks, c.me.Digests = registry.Proto{Min: 2, Now: 3}, map[int]string{1: "e"}
			c.look.App.Proto = registry.Proto{Min: 1, Now: 2}
		}, &conductor.DigestError{}},
		{"the same times", func(c *claimCase) {
			c.look.App.Times = c.me.Facts.Times.Agreed()
		}, conductor.Standby{}},
		{"a new run, with other times", func(c *claimCase) {
			c.look.App.Times = registry.AgreedTimes{TTL: 1}
			c.me.Run, c.me.NewRun, c.look.Directive.Verdict = "q", true, &registry.Verdict{Run: "r"}
		}, conductor.NewRun{}},
		{"another run, with members", func(c *claimCase) { c.me.Run, c.me.NewRun, c.look.AnyLive = "q", true, true }, &conductor.RunError{}},
		{"another run, nobody there, not asked for", func(c *claimCase) { c.me.Run = "q" }, &conductor.RunError{}},
		{"another run, nobody there but sessions", func(c *claimCase) {
			c.me.Run, c.me.NewRun, c.look.Holders = "q", true, []string{"worker-0"}
		}, conductor.Wait{}},
		{"another run is over, but agents live whose keys are missing", func(c *claimCase) {
			c.me.Run, c.me.NewRun, c.look.Directive.Verdict = "q", true, &registry.Verdict{Run: "r"}
			c.look.Holders = []string{"worker-0"}
		}, conductor.Wait{}},
		{"another run, nobody there", func(c *claimCase) { c.me.Run, c.me.NewRun = "q", true }, conductor.NewRun{}},
		{"another run, which would not have the index", func(c *claimCase) {
			c.me.Run, c.me.NewRun, c.look.Instance = "q", true, in("worker-2")
		}, &conductor.IndexError{}},
		{"the run is over", func(c *claimCase) { c.look.Directive.Verdict = &registry.Verdict{Run: "r"} }, &conductor.FinishedError{}},
		{"another run is over, not asked for", func(c *claimCase) { c.me.Run, c.look.Directive.Verdict = "q", &registry.Verdict{Run: "r"} }, &conductor.FinishedError{}},
		{"a run of another definition is over", func(c *claimCase) { c.me.Digest, c.look.Directive.Verdict = "e", &registry.Verdict{Run: "r"} }, &conductor.DigestError{}},
		{"a new run, of another definition", func(c *claimCase) {
			c.me.Run, c.me.NewRun, c.me.Digest, c.look.Directive.Verdict = "q", true, "e", &registry.Verdict{Run: "r"}
		}, conductor.NewRun{}},
		{"no such component", func(c *claimCase) { c.look.Instance = in("x-1") }, &conductor.IndexError{}},
		{"no such index, from a shell", func(c *claimCase) { c.look.Instance = in("worker-2") }, &conductor.IndexError{}},
		{"no such index, under a launcher", func(c *claimCase) { c.look.Instance, c.me.Launcher = in("worker-2"), true }, conductor.Wait{}},
		{"it comes with a flex", func(c *claimCase) {
			c.look.Instance, c.look.Member, c.look.MemberIndex = in("worker-2"), nil, 0
			c.look.Directive.Target = map[string]int{"worker": 3}
			c.gone()
		}, conductor.Claim{}},
		{"a second agent from a shell", func(c *claimCase) { c.look.Answers = true }, &conductor.HeldError{}},
		{"a second agent on its host", func(c *claimCase) { c.here(); c.life = conductor.LifeAlive }, &conductor.HeldError{}},
		{"a second agent, the first does not answer", func(*claimCase) {}, conductor.Standby{}},
		{"a second agent under a launcher", func(c *claimCase) { c.look.Answers, c.me.Launcher = true, true }, conductor.Standby{}},
		{"any index: this one is held", func(c *claimCase) { c.me.Instance = nil }, conductor.Retry{}},
		{"any index: this one has a result", func(c *claimCase) { c.me.Instance = nil; c.gone(); c.phase(registry.PhaseEnded) }, conductor.Retry{}},
		{"a result that counts", func(c *claimCase) { c.gone(); c.phase(registry.PhaseEnded) }, conductor.Wait{}},
		{"a result that counts, though the process is gone here", func(c *claimCase) { c.here(); c.life = conductor.LifeDead; c.phase(registry.PhaseEnded) }, conductor.Wait{}},
		{"a failure for good", func(c *claimCase) {
			c.gone()
			c.phase(registry.PhaseFailed)
			c.look.Member.Exit = &registry.MemberExit{Gen: 1, Final: true}
		}, conductor.Wait{}},
		{"a service that ended", func(c *claimCase) {
			c.gone()
			c.phase(registry.PhaseEnded)
			c.me.Facts = factsOf(component("worker", "service", 2, registry.ScopeInstance))
		}, conductor.Claim{}},
		{"locked, without a record", func(c *claimCase) { c.look.Member = nil }, conductor.Retry{}},
		{"mine already", func(c *claimCase) { c.look.Member.Inc = "new" }, conductor.Retry{}},
		{"mine, and its session has ended", func(c *claimCase) {
			c.gone()
			c.phase(registry.PhaseJoined)
			c.look.Member.Inc = "new"
		}, conductor.Claim{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClaimCase()
			tc.set(c)
			var got any = c.decide()
			if r, ok := got.(conductor.Refuse); ok {
				got = r.Err
			}
			if reflect.TypeOf(got) != reflect.TypeOf(tc.want) {
				t.Errorf("got %#v, want a %T", got, tc.want)
			}
		})
	}
}

func TestHeldErrorNamesTheHolder(t *testing.T) {
	c := newClaimCase()
	c.look.Answers = true
	var held *conductor.HeldError
	if r := c.decide().(conductor.Refuse); !errors.As(r.Err, &held) || held.Error() != "worker-1 is held by pid 7 on h1 since 2026-01-01T00:00:00Z" {
		t.Errorf("got %v", r.Err)
	}
}

// TestClaimChargesADeathOnce: the claimer of a record in ready under a run directive counts the death;
// nobody else's claim does.
func TestClaimChargesADeathOnce(t *testing.T) {
	for _, tc := range []struct {
		name    string
		set     func(*claimCase)
		used    int
		attempt int
		phase   registry.Phase
	}{
		{"ready and running", func(*claimCase) {}, 2, 3, registry.PhaseJoined},
		{"ready, not released", func(c *claimCase) { c.look.Directive.Act = registry.ActWait }, 1, 2, registry.PhaseJoined},
		{"still staging", func(c *claimCase) { c.phase(registry.PhaseJoined) }, 1, 2, registry.PhaseJoined},
		{"failed: its report has counted it", func(c *claimCase) { c.phase(registry.PhaseFailed) }, 1, 3, registry.PhaseJoined},
		{"of a gang: the conductor counts", func(c *claimCase) { c.gang() }, 1, 3, registry.PhaseJoined},
		{"of an earlier run", func(c *claimCase) { c.look.Member.Run = "q" }, 0, 1, registry.PhaseJoined},
		{"with nothing left", func(c *claimCase) { c.look.Member.Budget.Used = 5 }, 5, 3, registry.PhaseFailed},
		{"refilled by a checkpoint", func(c *claimCase) {
			c.look.Member.Budget.Used, c.look.Step = 5, 100
			c.me.Facts.Components[0].Budget.RefillCheckpoint = true
		}, 1, 3, registry.PhaseJoined},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClaimCase()
			c.here()
			c.life = conductor.LifeDead
			tc.set(c)
			got := c.decide().(conductor.Claim).Record
			if got.Budget.Used != tc.used || got.Attempt != tc.attempt || got.Phase != tc.phase {
				t.Errorf("got used %d, attempt %d, phase %s, want %d, %d, %s", got.Budget.Used, got.Attempt, got.Phase, tc.used, tc.attempt, tc.phase)
			}
			if final := got.Exit != nil && got.Exit.Final; final != (tc.phase == registry.PhaseFailed) {
				t.Errorf("got exit %+v", got.Exit)
			}
			if got.Run == c.look.Member.Run && (got.Was != "old" || !reflect.DeepEqual(got.Ports, map[string]int{"p": 1})) {
				t.Errorf("got was %q, ports %v", got.Was, got.Ports)
			}
		})
	}
}

// TestSpentClaimEndsTheRun: what the claimer writes when the budget is spent, the conductor rules on.
func TestSpentClaimEndsTheRun(t *testing.T) {
	g := running(t, factsOf(component("worker", "worker", 2, registry.ScopeInstance)))
	old := g.records[in("worker-1")]
	old.Machine, old.Boot, old.PidNS = "m1", "b1", "n1"
	old.Budget = registry.Budget{Used: 5, At: []time.Time{g.now, g.now, g.now, g.now, g.now}}
	c := newClaimCase()
	c.here()
	c.life = conductor.LifeDead
	c.look.Member, c.look.Now = &old.Member, g.now
	c.look.Directive = &g.dir
	claim := c.decide().(conductor.Claim)
	g.die("worker-1")
	g.live[in("worker-1")] = true
	g.put(in("worker-1"), claim.Record)
	g.settle()
	g.wantVerdict(registry.Failed, registry.ClassHost, "worker-1", "worker-1 failed: its agent died after 5 restarts in 300 s")
}

func TestFoundAndNewRun(t *testing.T) {
	c := newClaimCase()
	c.look = conductor.Snapshot{Instance: in("worker-1"), Now: t0}
	f := c.decide().(conductor.Found)
	if f.App.Run != "r" || f.App.Digest != "d" || f.App.Counts["worker"] != 2 || f.Directive.Gen != 1 || f.Directive.Act != registry.ActWait || f.Directive.By != "new" {
		t.Errorf("got %+v", f)
	}
	c = newClaimCase()
	c.me.Run, c.me.NewRun = "q", true
	c.look.Directive.Gen, c.look.Directive.Verdict, c.look.Directive.Budget.Used = 7, &registry.Verdict{Run: "r"}, 4
	n := c.decide().(conductor.NewRun)
	if n.Directive.Run != "q" || n.Directive.Gen != 8 || n.Directive.Act != registry.ActWait || n.Directive.Verdict != nil || n.Directive.Budget.Used != 0 || n.AppIndex != 3 || n.App.Run != "q" || n.Free != nil {
		t.Errorf("got %+v", n)
	}
	// Without a verdict the old run can be claimed until the new one stands.
	c.gone()
	c.look.Directive.Verdict, c.look.Directive.Target = nil, map[string]int{"worker": 3}
	n = c.decide().(conductor.NewRun)
	if want := []registry.Instance{in("worker-0"), in("worker-1"), in("worker-2")}; !slices.Equal(n.Free, want) {
		t.Errorf("must be free: %v, want %v", n.Free, want)
	}
}

func TestPickFree(t *testing.T) {
	all := []registry.Instance{in("chief-0")}
	for i := range 100 {
		all = append(all, registry.Instance{Component: "worker", Index: i})
	}
	live := map[registry.Instance]bool{in("chief-0"): true, in("worker-3"): true}
	records := map[registry.Instance]registry.Member{
		in("worker-4"): {Inc: "x", Phase: registry.PhaseReady}, in("worker-5"): {Inc: "y", Phase: registry.PhaseEnded}, in("worker-6"): {Inc: "z", Phase: registry.PhaseLeft},
	}
	got := conductor.PickFree(live, records, all, 42, 0)
	if len(got) != 98 || got[0] != in("worker-42") || got[97] != in("worker-4") {
		t.Fatalf("got %d, first %s, last %s; want 98, the hint first, what needs a proof last", len(got), got[0], got[len(got)-1])
	}
	seen := map[registry.Instance]bool{}
	for _, i := range got {
		seen[i] = true
	}
	if seen[in("worker-3")] || seen[in("worker-5")] || !seen[in("worker-6")] || len(seen) != 98 {
		t.Errorf("got %v", got)
	}
	if got := conductor.PickFree(live, records, all, 42, 2); !slices.Contains(got, in("worker-5")) {
		t.Error("worker-5 ended in an older generation than the gang was formed anew in: want it among the free")
	}
	first := map[registry.Instance]int{}
	for hint := range uint64(100) {
		first[conductor.PickFree(nil, nil, all[1:], hint, 0)[1]]++
	}
	if len(first) < 40 {
		t.Errorf("a hundred newcomers have only %d different second choices", len(first))
	}
	if got := conductor.PickFree(nil, nil, nil, 3, 0); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestDecideUnseats: a holder that is proved dead conducts no more.
func TestDecideUnseats(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*claimCase)
		want string
	}{
		{"proved dead while it conducted", func(c *claimCase) { c.here(); c.life = conductor.LifeDead }, "c1"},
		{"its session over, the lock not yet", func(c *claimCase) { c.here(); c.gone(); c.life = conductor.LifeDead }, "c1"},
		{"another conducts", func(c *claimCase) { c.here(); c.life = conductor.LifeDead; c.look.Directive.By = "other" }, ""},
		{"only its process is gone", func(c *claimCase) { c.gone(); c.phase(registry.PhaseFailed) }, ""},
		{"it has left", func(c *claimCase) { c.gone(); c.phase(registry.PhaseLeft) }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClaimCase()
			c.look.Directive.By, c.look.DirectiveSession = "old", "c1"
			tc.set(c)
			d, ok := c.decide().(conductor.Claim)
			if !ok || d.Unseat != tc.want {
				t.Errorf("got %+v, want a claim that ends the session %q", d, tc.want)
			}
		})
	}
}
