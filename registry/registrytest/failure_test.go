package registrytest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// rebuilt: a member fails, all go through the next generation, the budget is charged once.
func rebuilt(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	all[1].fail(1, registry.ClassApp)
	d := all[0].told(2, registry.ActWait)
	if d.Budget.Used != 1 || d.First != "worker-1" || d.Why == "" {
		t.Errorf("rebuild: %+v", d)
	}
	all.release(2)
	r, _ := all[2].roster(all[2].membership.Directive().Roster)
	if r.Gen != 2 || len(r.Rows) != 3 {
		t.Errorf("roster %+v", r)
	}
}

// budgetSpent: the failure after the last restart is final, and names the first cause.
func budgetSpent(t *testing.T, s server) {
	a := newApp(t, s)
	a.facts.GangBudget = conductor.BudgetRule{Max: 1}
	all := a.assemble(t, 1)
	all[1].fail(1, registry.ClassApp)
	all.release(2)
	all[0].fail(2, registry.ClassOOM)
	d := all[2].told(2, registry.ActStop)
	if v := d.Verdict; v == nil || v.Outcome != registry.Failed || v.First != "worker-0" || v.Class != registry.ClassOOM {
		t.Errorf("verdict %+v", v)
	}
}

// deathByProof: the agent is killed; its replacement on the host proves it and claims at once.
func deathByProof(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	dead := all[1]
	dead.membership.Close() // nothing is written: its session lives on

	var cleaned atomic.Value
	next := a.agent(t, "worker-1", holderGone, func(g *agent) {
		g.hooks.Clean = func(_ context.Context, _ registry.Instance, m registry.Member) error {
			cleaned.Store(m.Inc)
			return nil
		}
	}).join()
	if cleaned.Load() != dead.me.Member.Inc {
		t.Errorf("cleaned up after %v, want %s", cleaned.Load(), dead.me.Member.Inc)
	}
	if p := next.membership.Previous(); p == nil || p.Inc != dead.me.Member.Inc || p.Exports["exports.address"] == "" {
		t.Errorf("previous %+v", p)
	}
	if m := next.member("worker-1"); m.Was != dead.me.Member.Inc || m.Inc != next.me.Member.Inc || m.Attempt != 2 {
		t.Errorf("record %+v", m.Member)
	}
	all = append(all.without(dead), next)
	all.release(2)
	if d := all[0].membership.Directive(); d.Budget.Used != 1 {
		t.Errorf("budget %+v: a death counts once", d.Budget)
	}
}

// deathByProofUnnamed: a replacement that was given no index finds the one whose holder is dead, though
// its session has not ended.
func deathByProofUnnamed(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	dead := all[1]
	dead.membership.Close()
	next := a.agent(t, "", func(g *agent) {
		g.me.Member.Machine = dead.me.Member.Machine
		g.hooks.Alive = func(m registry.Member) (bool, string) { return m.Inc == dead.me.Member.Inc, "in the test" }
	}).join()
	if next.membership.Instance() != dead.membership.Instance() {
		t.Errorf("claimed %s, want %s", next.membership.Instance(), dead.membership.Instance())
	}
	append(all.without(dead), next).release(2)
}

// secondAgent: from a shell the second agent of an index is refused, naming the first.
func secondAgent(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	err := a.agent(t, "worker-1", answering).tryJoin()
	h, ok := errors.AsType[*conductor.HeldError](err)
	if !ok || h.Holder.Inc != all[1].me.Member.Inc || h.Instance.String() != "worker-1" {
		t.Fatalf("second agent: %v", err)
	}
	if n := heard(all[1], func(registry.SupersededBy) bool { return true }); n != 0 {
		t.Error("the first agent was superseded")
	}
	if m := all[0].member("worker-1"); !m.Live || m.Inc != all[1].me.Member.Inc {
		t.Errorf("record %+v", m)
	}
}

// standby: under a launcher the second agent waits, and takes over when the first has left.
func standby(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	second := a.agent(t, "worker-1", answering, launched)
	joined := make(chan error, 1)
	go func() { joined <- second.tryJoin() }()
	by := await(second, func(registry.StandingBy) bool { return true })
	if by.Holder.Inc != all[1].me.Member.Inc || by.Instance.String() != "worker-1" {
		t.Errorf("standing by %+v", by)
	}
	all[1].leave()
	must(t, <-joined)
	gang{all[0], all[2], second}.release(2)
}

// digestDiffers: an agent with another definition is refused, with both digests.
func digestDiffers(t *testing.T, s server) {
	a := newApp(t, s)
	a.assemble(t, 1)
	err := a.agent(t, "worker-1", func(g *agent) { g.me.Digest = "digest-9" }).tryJoin()
	if d, ok := errors.AsType[*conductor.DigestError](err); !ok || d.Have != "digest-9" || d.Want != "digest-1" {
		t.Errorf("join: %v", err)
	}
}

// anotherRun: an unfinished run with live members is not followed by another.
func anotherRun(t *testing.T, s server) {
	a := newApp(t, s)
	a.assemble(t, 1)
	err := a.agent(t, "worker-1", func(g *agent) { g.me.Run, g.me.NewRun = "2", true }).tryJoin()
	if r, ok := errors.AsType[*conductor.RunError](err); !ok || r.Have != "1" || r.Want != "2" {
		t.Errorf("join: %v", err)
	}
}

// leave: a member that leaves frees its index at once and costs no budget.
func leave(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	gone := all[1]
	gone.fail(1, registry.ClassLauncher) // TERM: its process is gone before it goes
	gone.leave()
	if m := all[0].member("worker-1"); m.Live || m.Phase != registry.PhaseLeft {
		t.Errorf("after leaving: %+v", m)
	}
	if err := gone.membership.Report(soon(t), registry.Report{Phase: registry.PhaseEnded}); err == nil {
		t.Error("a membership that was left can be written")
	}
	next := a.agent(t, "worker-1").join()
	rest := append(all.without(gone), next)
	rest.release(2)
	if d := rest[0].membership.Directive(); d.Budget.Used != 0 {
		t.Errorf("budget %+v", d.Budget)
	}
}

// interrupted: all leave, nobody rules; launched again the run goes on at a newer generation, and what was
// used of the budget stays used.
func interrupted(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	all[1].fail(1, registry.ClassApp)
	all.release(2)
	before := all[0].membership.Directive()
	all.each(func(g *agent) { g.fail(2, registry.ClassLauncher) })
	all.each((*agent).leave)
	st := all[0].status()
	if st.Verdict != nil || !st.Interrupted() {
		t.Fatalf("after all left: %+v", st)
	}

	var again gang
	for _, g := range all {
		again = append(again, a.agent(t, g.membership.Instance().String()).join())
	}
	gen := st.Directive.Gen
	if st.Directive.Act == registry.ActRun { // nobody was left to rebuild it: a newcomer does
		gen++
	}
	again.release(gen)
	d := again[0].membership.Directive()
	if d.Gen <= before.Gen || d.Budget.Used < before.Budget.Used || d.Run != "1" {
		t.Errorf("goes on with %+v, was %+v", d, before)
	}
}

// saidGone: the operator's word is a proof, for that incarnation.
func saidGone(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	dead := all[1]
	dead.membership.Close()
	next := a.agent(t, "worker-1")
	joined := make(chan error, 1)
	go func() { joined <- next.tryJoin() }()
	await(next, func(registry.StandingBy) bool { return true })
	must(t, next.client.Ask(soon(t), a.facts.App, registry.Ask{
		Kind: registry.AskGone, By: "operator", Args: map[string]string{"instance": "worker-1", "inc": dead.me.Member.Inc},
	}))
	must(t, <-joined)
	append(all.without(dead), next).release(2)
}

// stop: a client asks, all are told, one verdict.
func stop(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	must(t, all[2].client.Ask(soon(t), a.facts.App, registry.Ask{Kind: registry.AskStop, By: "stop"}))
	for _, g := range all {
		if d := g.told(1, registry.ActStop); d.Verdict == nil || d.Verdict.Outcome != registry.Stopped || d.Verdict.By != "stop" {
			t.Errorf("%s: %+v", g.name(), d.Verdict)
		}
	}
	all.each((*agent).leave)
	if err := all[0].client.Ask(soon(t), "nobody-knows-me", registry.Ask{Kind: registry.AskStop}); !errors.Is(err, registry.ErrNoApp) {
		t.Errorf("ask of an unknown app: %v", err)
	}
}

// service: it claims and publishes, and the gang neither waits for it nor minds its end.
func service(t *testing.T, s server) {
	board := component("board", 1, registry.ScopeInstance)
	board.Role, board.Waited, board.Ends, board.Fails = "service", false, false, false
	a := newApp(t, s, component("worker", 1, registry.ScopeGang), board)
	worker := a.agent(t, "worker-0").join()
	gang{worker}.release(1) // nobody waits for the board
	g := a.agent(t, "board-0").join()
	must(t, g.membership.Publish(soon(t), func(m *registry.Member) { m.Exports = map[string]string{"board.url": "http://127.0.0.1:1"} }))
	if m := worker.member("board-0"); m.Exports["board.url"] == "" || !m.Live {
		t.Errorf("record %+v", m)
	}
	g.leave()
	worker.finish(1)
	if d := worker.told(1, registry.ActStop); d.Verdict.Outcome != registry.Succeeded {
		t.Errorf("verdict %+v", d.Verdict)
	}
}

// instanceScope: a restart in place wakes nobody; a replacement with the same ports joins the same
// generation.
func instanceScope(t *testing.T, s server) {
	a := newApp(t, s, component("worker", 2, registry.ScopeInstance), component("ps", 1, registry.ScopeInstance))
	all := a.assemble(t, 1)
	seq := all[0].membership.Directive().Seq
	must(t, all[1].membership.Restarted(soon(t), 2, registry.Budget{Used: 1}, nil))
	if m := all[0].member("worker-1"); m.Attempt != 2 || m.Budget.Used != 1 || m.Phase != registry.PhaseReady {
		t.Errorf("restarted: %+v", m.Member)
	}
	dead := all[1]
	dead.membership.Close()
	next := a.agent(t, "worker-1", holderGone).join()
	if p := next.membership.Previous(); p == nil || p.Attempt != 2 || p.Budget.Used != 1 {
		t.Errorf("previous %+v", p)
	}
	next.told(1, registry.ActRun)
	next.ready(1) // the same address
	if m := next.member("worker-1"); m.Attempt != 3 || m.Budget.Used != 2 || m.Phase != registry.PhaseReady || m.Gen != 1 {
		t.Errorf("replaced: %+v", m.Member)
	}
	all[0].finish(1)
	next.finish(1)
	d := all[2].told(1, registry.ActStop)
	if d.Verdict.Outcome != registry.Succeeded || d.Seq != seq+1 {
		t.Errorf("after %d ended with %+v: the directive was written in between", seq, d)
	}
}

// forget: refused while anybody lives; then nothing is left.
func forget(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	operator := a.agent(t, "")
	if err := operator.client.Forget(soon(t), a.facts.App); err == nil {
		t.Fatal("a living app was forgotten")
	}
	all[0].finish(1)
	all[1].finish(1)
	all.each(func(g *agent) { g.told(1, registry.ActStop) })
	all.each((*agent).leave)
	apps, _, err := operator.client.Apps(soon(t), nil)
	must(t, err)
	found := false
	for _, st := range apps {
		if st.ID != a.facts.App {
			continue
		}
		found = st.Verdict != nil
		for since, want := range map[uint64]int{st.Index: 1, st.Index - 1: 0} {
			same, err := operator.client.Unchanged(soon(t), map[string]uint64{st.ID: since, st.ID + "-none": 1})
			if must(t, err); len(same) != want {
				t.Errorf("unchanged since %d, written at %d: %q", since, st.Index, same)
			}
		}
	}
	if !found {
		t.Errorf("%s is not among the apps", a.facts.App)
	}
	must(t, operator.client.Forget(soon(t), a.facts.App))
	if _, err := operator.client.Status(soon(t), a.facts.App); !errors.Is(err, registry.ErrNoApp) {
		t.Errorf("status of a forgotten app: %v", err)
	}
	if err := operator.client.Forget(soon(t), a.facts.App); !errors.Is(err, registry.ErrNoApp) {
		t.Errorf("forgotten twice: %v", err)
	}
}

// lost: nothing proves a member's death; after the grace the conductor declares it lost, and its index is
// free for anybody.
func lost(t *testing.T, s server) {
	a := newApp(t, s)
	a.facts.Times.Lost = time.Millisecond
	all := a.assemble(t, 1)
	dead := all[1]
	dead.membership.Close()
	kv := rawOf(t, a.url)
	e, _, _ := kv.get(a.facts.App + "/live/worker/1")
	kv.destroy(e.Session) // as its end by time would
	d := all[0].told(2, registry.ActWait)
	if d.First != "worker-1" || d.Budget.Used != 1 {
		t.Errorf("rebuild: %+v", d)
	}
	missed := 0
	for _, g := range all.without(dead) { // one of them conducts
		g.told(2, registry.ActWait)
		missed += heard(g, func(e registry.Missing) bool {
			return len(e.Losses) == 1 && e.Losses[0].Instance.String() == "worker-1"
		})
		if heard, now := g.membership.LastContact(); now < heard || now-heard > registry.DefaultTimes().Fence() {
			t.Errorf("%s has heard nothing for %s", g.name(), now-heard)
		}
	}
	if missed == 0 {
		t.Error("the conductor does not say whom it waits for")
	}
	if m := all[0].member("worker-1"); m.Phase != registry.PhaseLost || m.Inc != dead.me.Member.Inc {
		t.Errorf("record %+v", m.Member)
	}
	elsewhere := a.agent(t, "worker-1", func(g *agent) { g.me.Member.Machine = "another" }).join()
	append(all.without(dead), elsewhere).release(2)
}

// flex: a client asks for one more worker; it joins the running generation's future, and the next one has it.
func flex(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	more := a.agent(t, "worker-2", launched)
	joined := make(chan error, 1)
	go func() { joined <- more.tryJoin() }()
	must(t, all[0].client.Ask(soon(t), a.facts.App, registry.Ask{Kind: registry.AskFlex, Args: map[string]string{"worker": "3"}}))
	must(t, <-joined)
	must(t, more.membership.Publish(soon(t), func(m *registry.Member) { m.Exports = map[string]string{"exports.address": "127.0.0.1:1"} }))
	all = append(all, more)
	all.release(2)
	d := more.membership.Directive()
	r, _ := more.roster(d.Roster)
	if app := more.status().App; app.Counts["worker"] != 3 || app.Digest != a.facts.Digest {
		t.Errorf("the app's record after the flex: %+v", app)
	}
	if len(r.Rows) != 4 || d.Counts["worker"] != 3 || d.Budget.Used != 0 {
		t.Errorf("after the flex: %+v with %d rows", d, len(r.Rows))
	}
}

// manyLost: members that are lost at the same moment are declared lost in fewer transactions than one each.
func manyLost(t *testing.T, s server) {
	const n, dead = 32, 12
	w := newWire(t, s)
	a := newApp(t, w, component("worker", n, registry.ScopeInstance))
	a.facts.Times.Lost = 2 * time.Second
	all := a.assemble(t, 1)
	lost := all.without(all.conductor(t))[:dead]
	var writes atomic.Int32
	// The conductor looks again when all are dead: their timers begin together, however slow this machine is.
	dying := make(chan struct{})
	w.when(func(r *http.Request, body string) *encounter {
		if !strings.HasPrefix(r.URL.Path, "/v1/txn") {
			return nil
		}
		key := `"Key":"muster/` + a.facts.App
		has := func(verb, folder string) bool { return strings.Contains(body, `"Verb":"`+verb+`",`+key+folder) }
		if has("get-tree", "/live/") {
			return &encounter{hold: dying}
		}
		if has("check-not-exists", "/live/") && has("cas", "/members/") {
			writes.Add(1)
		}
		return nil
	})
	kv := rawOf(t, s.URL())
	for _, g := range lost {
		g.membership.Close()
	}
	for _, g := range lost {
		live, _, _ := kv.get(fmt.Sprintf("%s/live/worker/%d", a.facts.App, g.me.Instance.Index))
		kv.destroy(live.Session) // as its end by time would
	}
	close(dying)
	for _, g := range lost {
		kv.until(fmt.Sprintf("%s/members/worker/%d", a.facts.App, g.me.Instance.Index), func(e entry, ok bool) bool {
			return ok && strings.Contains(string(e.Value), `"ph":"lost"`)
		})
	}
	// On a busy machine their timers do not begin in the same step, and a write is tried again.
	if n := int(writes.Load()); n >= dead {
		t.Errorf("%d transactions for %d lost members", n, dead)
	}
}
