package registrytest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
)

// deleteTree deletes all keys of an app, or below one of its folders; sessions stay.
func (r raw) deleteTree(prefix string) {
	r.t.Helper()
	if code, _, body := r.do(http.MethodDelete, "/kv/muster/"+prefix+"?recurse"); code != http.StatusOK {
		r.t.Fatalf("delete %s: %d %s", prefix, code, body)
	}
}

// places waits until so many sessions have names of the app's instances.
func (r raw) places(app string, n int) {
	r.t.Helper()
	for ctx := soon(r.t); ; time.Sleep(20 * time.Millisecond) {
		_, _, body := r.do(http.MethodGet, "/session/list")
		if strings.Count(string(body), "muster "+app+" ") >= n {
			return
		}
		if ctx.Err() != nil {
			r.t.Fatalf("want %d sessions of %s: %s", n, app, body)
		}
	}
}

// inContact waits until some beats have passed, and tells whether they were contact.
func (g *agent) inContact() bool {
	g.t.Helper()
	began, _ := g.membership.LastContact()
	for end := time.Now().Add(6 * g.me.Facts.Times.Renew); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if now, _ := g.membership.LastContact(); now != began {
			return true
		}
	}
	return false
}

// awaitContact waits until a beat finds that the index is the agent's again.
func (g *agent) awaitContact() {
	g.t.Helper()
	ctx := soon(g.t)
	for !g.inContact() {
		if ctx.Err() != nil {
			g.t.Fatalf("%s: no contact", g.name())
		}
	}
}

func lostData(g *agent) registry.DataLost {
	g.t.Helper()
	return await(g, func(registry.DataLost) bool { return true })
}

// dataDeleted: somebody deletes the keys of a running app, whose sessions live on. Its members have no contact from then on
// although their sessions are renewed, and nobody founds the app anew. One that is told to adopts it, and the run ends right.
func dataDeleted(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	all := a.assemble(t, 1, quickly)
	waiting := a.agent(t, "worker-1", quickly)
	stranger := a.agent(t, "worker-1", quickly)
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	var joining sync.WaitGroup
	join := func(g *agent) {
		joining.Go(func() {
			if _, err := g.client.Join(ctx, g.me, g.hooks, g.hear); err == nil {
				t.Errorf("%s has joined", g.me.Member.Inc)
			}
		})
	}
	join(waiting)
	await(waiting, func(registry.StandingBy) bool { return true })
	_, roster := all[1].roster(all[1].membership.Directive().Roster)

	kv.deleteTree(a.facts.App + "/")
	for _, g := range all {
		lostData(g)
		if g.inContact() {
			t.Errorf("%s is in contact with a registry that has lost its data", g.name())
		}
	}
	lostData(waiting)
	join(stranger)
	if e := lostData(stranger); !strings.Contains(e.Why, "worker-1") {
		t.Errorf("a newcomer is told: %s", e.Why)
	}
	if keys := kv.keys(a.facts.App + "/"); len(keys) != 0 {
		t.Errorf("keys %q: somebody has founded the app anew", keys)
	}

	if d, err := all[1].membership.Adopt(soon(t), roster); err != nil || d.Gen != 1 || d.Act != registry.ActRun {
		t.Fatalf("adopted %+v: %v", d, err)
	}
	for _, g := range all {
		await(g, func(registry.Reachable) bool { return true })
		g.awaitContact()
		if heard(g, func(registry.SupersededBy) bool { return true }) != 0 {
			t.Errorf("%s: superseded", g.name())
		}
	}
	if _, err := all[1].membership.Adopt(soon(t), roster); err == nil {
		t.Error("adopted twice")
	}
	all.each(func(g *agent) {
		if m := g.member(g.name()); m.Inc != g.me.Member.Inc || m.Phase != registry.PhaseReady || !m.Live {
			t.Errorf("%s: record %+v", g.name(), m)
		}
		if r, _ := g.roster(g.membership.Directive().Roster); len(r.Rows) != 3 {
			t.Errorf("%s: roster %+v", g.name(), r)
		}
	})
	// Again, while results are on their way.
	kv.deleteTree(a.facts.App + "/")
	for _, g := range all {
		lostData(g)
	}
	var reports sync.WaitGroup
	for _, g := range all[:2] {
		reports.Go(func() { g.finish(1) })
	}
	all[2].membership.Close() // killed
	late := a.agent(t, all[2].name(), quickly)
	join(late)
	lostData(late)
	if keys := kv.keys(a.facts.App + "/"); len(keys) != 0 {
		t.Errorf("keys %q: somebody has founded the app anew", keys)
	}
	cancel()
	joining.Wait()
	if _, err := all[1].membership.Adopt(soon(t), roster); err != nil {
		t.Fatal(err)
	}
	reports.Wait()
	all[:2].each(func(g *agent) { g.told(1, registry.ActStop) })
}

// deletedUnderANewLeader: the data is deleted, and a newcomer asks for the sessions of the app when the registry does not
// answer truly yet. It founds nothing.
func deletedUnderANewLeader(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	all := a.assemble(t, 1, quickly)
	kv.deleteTree(a.facts.App + "/")
	for _, g := range all {
		lostData(g)
	}
	ctx, cancel := context.WithCancel(soon(t))
	stranger := a.through(elected(t, s)).agent(t, "worker-1", quickly)
	var joining sync.WaitGroup
	joining.Go(func() {
		if _, err := stranger.client.Join(ctx, stranger.me, stranger.hooks, stranger.hear); err == nil {
			t.Error("a newcomer has joined")
		}
	})
	lostData(stranger)
	if keys := kv.keys(a.facts.App + "/"); len(keys) != 0 {
		t.Errorf("keys %q: somebody has founded the app anew", keys)
	}
	cancel()
	joining.Wait()
}

// lostAtTheBarrier: the data is deleted while a new run waits. It is adopted without the roster of the last run, which nobody
// of this one has read.
func lostAtTheBarrier(t *testing.T, s server) {
	a := newApp(t, s)
	a.assemble(t, 1).succeed(1)
	a.facts.Run = "2"
	first := a.agent(t, "worker-0", anotherOne, quickly).join()
	first.told(2, registry.ActWait)
	rawOf(t, s.URL()).deleteTree(a.facts.App + "/")
	lostData(first)
	if d, err := first.membership.Adopt(soon(t), nil); err != nil || d.Gen != 2 || d.Act != registry.ActWait {
		t.Fatalf("adopted %+v: %v", d, err)
	}
	first.awaitContact()
	all := gang{first}
	for _, name := range []string{"worker-1", "ps-0"} {
		all = append(all, a.agent(t, name, anotherOne).join())
	}
	all.release(2)
	all.succeed(2)
}

// wentBack: the registry has an older copy of the directive. Nobody follows that, but for the verdict to which it leads.
func wentBack(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	all := a.assemble(t, 1, quickly)
	old := all[0].status().Directive
	all[1].fail(1, registry.ClassApp)
	all.release(2)
	kv.record(a.facts.App+"/directive", old)
	for _, g := range all {
		lostData(g)
		if g.inContact() {
			t.Errorf("%s is in contact with a registry that went back", g.name())
		}
	}
	old.Act, old.Verdict = registry.ActStop, &registry.Verdict{Version: 1, Run: "1", Outcome: registry.Failed, Class: registry.ClassTimeout, Gen: 1}
	kv.record(a.facts.App+"/directive", old)
	for _, g := range all {
		if d := g.told(1, registry.ActStop); d.Verdict.Class != registry.ClassTimeout {
			t.Errorf("%s: verdict %+v", g.name(), d.Verdict)
		}
	}
}

// foundedAnew: the registry has lost an app and knows another one of the same name and run since. Its directive is not
// followed, however far it has come, and who held an index of the first gives up.
func foundedAnew(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	all := a.assemble(t, 1, quickly)
	app := all[0].status().App
	directive := all[0].status().Directive
	kv.deleteTree(a.facts.App + "/")
	for _, g := range all {
		lostData(g)
	}
	app.Created, app.By = app.Created.Add(time.Hour), "stranger"
	directive.Gen, directive.Act, directive.By = 9, registry.ActWait, "stranger"
	kv.record(a.facts.App+"/app", app)
	kv.record(a.facts.App+"/directive", directive)
	for _, g := range all {
		if e := await(g, func(registry.SupersededBy) bool { return true }); e.Inc != "stranger" {
			t.Errorf("%s: superseded by %s", g.name(), e.Inc)
		}
	}
}

// foundedForTheNextRun: the run is over, the data is deleted, and the next run begins before its members have left. What
// they know is no longer written: it would end the next run with their verdict.
func foundedForTheNextRun(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	all := a.assemble(t, 1, quickly)
	_, roster := all[1].roster(all[1].membership.Directive().Roster)
	all.finish(1)
	app := all[0].status().App
	kv.deleteTree(a.facts.App + "/")
	for _, g := range all {
		lostData(g)
	}
	app.Run, app.Created, app.By = "2", app.Created.Add(time.Hour), "stranger"
	next := registry.Directive{Run: "2", Gen: 1, Act: registry.ActWait, Seq: 1, By: "stranger", Counts: app.Counts}
	kv.record(a.facts.App+"/app", app)
	kv.record(a.facts.App+"/directive", next)
	if d, err := all[1].membership.Adopt(soon(t), roster); !errors.Is(err, consul.ErrNothingLost) {
		t.Errorf("adopted %+v: %v", d, err)
	}
	if d := all[0].status().Directive; d.Run != "2" || d.Verdict != nil {
		t.Errorf("directive %+v", d)
	}
}

// anotherVerdictStands: an older copy was restored, and the run came to another verdict there, which is the registry's: an
// agent that knows the first does not write that over it.
func anotherVerdictStands(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	all := a.assemble(t, 1, quickly)
	_, roster := all[1].roster(all[1].membership.Directive().Roster)
	all.finish(1)
	kv.record(a.facts.App+"/verdict/1", registry.Verdict{Version: 1, Run: "1", Outcome: registry.Failed, Class: registry.ClassTimeout, Gen: 1})
	kv.deleteTree(a.facts.App + "/directive")
	for _, g := range all {
		lostData(g)
	}
	if d, err := all[1].membership.Adopt(soon(t), roster); err != nil || d.Verdict.Class != registry.ClassTimeout {
		t.Errorf("adopted %+v: %v", d.Verdict, err)
	}
	if d := all[0].status().Directive; d.Verdict == nil || d.Verdict.Class != registry.ClassTimeout {
		t.Errorf("directive %+v", d)
	}
	if _, _, body := kv.do(http.MethodGet, "/kv/muster/"+a.facts.App+"/verdict/1?raw"); !strings.Contains(string(body), `"timeout"`) {
		t.Errorf("verdict %s", body)
	}
}

// ownRecordLost: a member's own keys vanish, or come back from an older copy. It writes them again as they were last.
func ownRecordLost(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	all := a.assemble(t, 1, quickly)
	in := all[1].membership.Instance()
	for _, folder := range []string{"members", "live", "ready/1"} {
		key := strings.Join([]string{a.facts.App, folder, in.Component, "1"}, "/")
		if _, _, ok := kv.get(key); !ok {
			t.Fatalf("no key %s", key)
		}
		kv.deleteTree(key)
	}
	kv.until(a.facts.App+"/live/worker/1", func(e entry, ok bool) bool { return ok && e.Session != "" })
	kv.until(a.facts.App+"/ready/1/worker/1", func(e entry, ok bool) bool { return ok && e.Session != "" })
	var m registry.Member
	must(t, json.Unmarshal(kv.until(a.facts.App+"/members/worker/1", func(_ entry, ok bool) bool { return ok }).Value, &m))
	if m.Inc != all[1].me.Member.Inc || m.Phase != registry.PhaseReady || m.Gen != 1 {
		t.Errorf("record %+v", m)
	}
	all[1].awaitContact()
	if d := all[0].status().Directive; d.Gen != 1 || d.Act != registry.ActRun {
		t.Errorf("directive %+v", d)
	}
	all.succeed(1)
}
