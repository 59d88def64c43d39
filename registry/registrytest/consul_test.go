package registrytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestOutage: Consul is stopped and started again with its data. Nobody stops, everybody says so, and the
// run ends right; the same when it is killed.
func TestOutage(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	a := newApp(t, s)
	all := a.assemble(t, 1)
	for _, end := range []func(){s.Stop, s.Kill} {
		end()
		for _, g := range all {
			if e := await(g, func(registry.Unreachable) bool { return true }); e.Since.IsZero() || e.Err == nil {
				t.Errorf("%s: %+v", g.name(), e)
			}
		}
		s.Restart()
		for _, g := range all {
			await(g, func(registry.Reachable) bool { return true })
		}
	}
	if d := all[1].membership.Directive(); d.Gen != 1 || d.Act != registry.ActRun {
		t.Errorf("after the outages: %+v", d)
	}
	all[0].finish(1)
	all[1].finish(1)
	if d := all[2].told(1, registry.ActStop); d.Verdict.Outcome != registry.Succeeded {
		t.Errorf("verdict %+v", d.Verdict)
	}
	for _, g := range all {
		if n := heard(g, func(registry.DataLost) bool { return true }) + heard(g, func(registry.SupersededBy) bool { return true }); n != 0 {
			t.Errorf("%s: %s", g.name(), g.story())
		}
	}
}

// TestWriteDuringOutage: what is reported while Consul is away arrives when it is back.
func TestWriteDuringOutage(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	a := newApp(t, s)
	all := a.assemble(t, 1)
	s.Stop()
	var reports sync.WaitGroup
	for _, g := range all[:2] {
		reports.Go(func() {
			if err := g.membership.Report(soon(t), registry.Report{Phase: registry.PhaseEnded, Exit: registry.MemberExit{Gen: 1, Code: new(0)}}); err != nil {
				t.Error(err)
			}
		})
		await(g, func(registry.Unreachable) bool { return true })
	}
	s.Restart()
	reports.Wait()
	if d := all[2].told(1, registry.ActStop); d.Verdict.Outcome != registry.Succeeded {
		t.Errorf("verdict %+v", d.Verdict)
	}
}

// TestDataLost: Consul comes back empty. Nobody stops, nobody founds the app anew, and it is named.
func TestDataLost(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	a := newApp(t, s)
	all := a.assemble(t, 1)
	s.RestartEmpty()
	for _, g := range all {
		if e := await(g, func(registry.DataLost) bool { return true }); e.Why == "" {
			t.Errorf("%s: %+v", g.name(), e)
		}
	}
	ctx, cancel := context.WithCancel(soon(t))
	report := make(chan error, 1)
	go func() {
		report <- all[1].membership.Report(ctx, registry.Report{Phase: registry.PhaseFailed, Exit: registry.MemberExit{Gen: 1}})
	}()
	// Two more outages' worth of renewals, elections and writes happen in here.
	s.Restart()
	for _, g := range all {
		await(g, func(registry.Unreachable) bool { return true })
	}
	all[0].settle()
	cancel()
	if err := <-report; !errors.Is(err, context.Canceled) {
		t.Errorf("report into an empty registry: %v", err)
	}
	if _, err := all[0].client.Status(soon(t), a.facts.App); !errors.Is(err, registry.ErrNoApp) {
		t.Errorf("somebody founded the app anew: %v", err)
	}
	for _, g := range all {
		if n := heard(g, func(registry.SupersededBy) bool { return true }); n != 0 {
			t.Errorf("%s: superseded", g.name())
		}
	}

	rawOf(t, s.URL()).places(a.facts.App, len(all))
	// A newcomer finds the sessions that the members have made again, and founds nothing.
	ctx, cancel = context.WithCancel(soon(t))
	defer cancel()
	stranger := a.agent(t, "worker-1")
	var joining sync.WaitGroup
	joining.Go(func() {
		if _, err := stranger.client.Join(ctx, stranger.me, stranger.hooks, stranger.hear); err == nil {
			t.Error("a newcomer has joined")
		}
	})
	lostData(stranger)
	all.each(func(g *agent) {
		if _, err := g.membership.Roster(soon(t), g.membership.Directive().Roster); err == nil {
			t.Errorf("%s reads a roster that is gone", g.name())
		}
	})
	cancel()
	joining.Wait()
}

// TestSnapshotRestored: Consul's data is restored from a copy of a generation ago, in which a dead agent holds the index of
// one that lives now. Nobody gives up for what is older, and after the adoption the members' own records are there again.
func TestSnapshotRestored(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	kv := rawOf(t, s.URL())
	a := newApp(t, s)
	first := a.assemble(t, 1, quickly)
	_, _, snapshot := kv.do(http.MethodGet, "/snapshot")
	before, _, _ := kv.get(a.facts.App + "/live/worker/1")
	lock, _, _ := kv.get(a.facts.App + "/directive")
	first[1].membership.Close()
	second := a.agent(t, "worker-1", holderGone, quickly).join()
	all := gang{first[0], second, first[2]}
	all.release(2)
	_, file := second.roster(second.membership.Directive().Roster)

	if code, _, body := kv.send(http.MethodPut, "/snapshot", bytes.NewReader(snapshot)); code != http.StatusOK {
		t.Fatalf("restore: %d %s", code, body)
	}
	for _, g := range all {
		lostData(g)
	}
	kv.renewing(before.Session) // as if they came back for ever: nobody waits for their end
	kv.renewing(lock.Session)
	if second.inContact() {
		t.Error("in contact with a registry that went back")
	}
	if d, err := second.membership.Adopt(soon(t), file); err != nil || d.Gen != 2 {
		t.Fatalf("adopted %+v: %v", d, err)
	}
	for _, g := range all {
		g.awaitContact()
		if n := heard(g, func(registry.SupersededBy) bool { return true }); n != 0 {
			t.Errorf("%s: superseded by an older record", g.name())
		}
		if m := g.member(g.name()); m.Inc != g.me.Member.Inc || m.Gen != 2 || !m.Live {
			t.Errorf("%s: record %+v", g.name(), m)
		}
	}
	all.succeed(2)
}

// TestSnapshotAfterADeletion: the data is deleted, and a copy of before the run is restored. Once one of the members has
// adopted the app, none gives up for a record of the last run.
func TestSnapshotAfterADeletion(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	kv := rawOf(t, s.URL())
	a := newApp(t, s)
	a.assemble(t, 1).succeed(1)
	_, _, snapshot := kv.do(http.MethodGet, "/snapshot")
	a.facts.Run = "2"
	all := a.assemble(t, 2, anotherOne, quickly)
	_, file := all[0].roster(all[0].membership.Directive().Roster)
	kv.deleteTree(a.facts.App + "/")
	for _, g := range all {
		lostData(g)
		if g.inContact() { // it has seen that nothing of its own is there
			t.Errorf("%s: in contact with a registry that has lost its data", g.name())
		}
	}
	if code, _, body := kv.send(http.MethodPut, "/snapshot", bytes.NewReader(snapshot)); code != http.StatusOK {
		t.Fatalf("restore: %d %s", code, body)
	}
	kv.places(a.facts.App, len(all))
	if d, err := all[0].membership.Adopt(soon(t), file); err != nil || d.Run != "2" {
		t.Fatalf("adopted %+v: %v", d, err)
	}
	for _, g := range all {
		g.awaitContact()
		if n := heard(g, func(registry.SupersededBy) bool { return true }); n != 0 {
			t.Errorf("%s: superseded by a record of the last run", g.name())
		}
	}
}

// TestSnapshotOfBeforeAReport: Consul's data is restored from a copy of before a member has reported. It reports again, and
// takes back the acknowledgement that came with the copy: with that a conductor would not look for a result.
func TestSnapshotOfBeforeAReport(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	kv := rawOf(t, s.URL())
	a := newApp(t, s)
	all := a.assemble(t, 1, quickly)
	_, _, snapshot := kv.do(http.MethodGet, "/snapshot")
	all[1].finish(1)
	if code, _, body := kv.send(http.MethodPut, "/snapshot", bytes.NewReader(snapshot)); code != http.StatusOK {
		t.Fatalf("restore: %d %s", code, body)
	}
	var m registry.Member
	kv.until(a.facts.App+"/members/worker/1", func(e entry, _ bool) bool {
		return json.Unmarshal(e.Value, &m) == nil && m.Phase == registry.PhaseEnded
	})
	lock, _, _ := kv.get(a.facts.App + "/directive")
	kv.destroy(lock.Session) // the next conductor has seen nothing of it
	all[0].finish(1)
	all.each(func(g *agent) { g.told(1, registry.ActStop) })
}

// TestSnapshotOfTheLastRun: Consul's data is restored from a copy of before the run that lives, and an agent of that run
// comes. It does not begin the run again beside those that live; once one of them has adopted the app it stands by.
func TestSnapshotOfTheLastRun(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	kv := rawOf(t, s.URL())
	a := newApp(t, s)
	a.assemble(t, 1).succeed(1)
	_, _, snapshot := kv.do(http.MethodGet, "/snapshot")
	a.facts.Run = "2"
	all := a.assemble(t, 2, anotherOne, quickly)
	_, file := all[0].roster(all[0].membership.Directive().Roster)

	if code, _, body := kv.send(http.MethodPut, "/snapshot", bytes.NewReader(snapshot)); code != http.StatusOK {
		t.Fatalf("restore: %d %s", code, body)
	}
	for _, g := range all {
		lostData(g)
	}
	kv.places(a.facts.App, len(all))
	leader := elected(t, s)
	again := a.through(leader).agent(t, "worker-1", anotherOne, quickly)
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	var joining sync.WaitGroup
	joining.Go(func() {
		if _, err := again.client.Join(ctx, again.me, again.hooks, again.hear); err == nil {
			t.Error("a second agent of an index that is held has joined")
		}
	})
	leader.listed(t, 2)
	if d := all[0].status().Directive; d.Run != "1" {
		t.Fatalf("run 2 was begun anew: %+v", d)
	}
	if d, err := all[0].membership.Adopt(soon(t), file); err != nil || d.Run != "2" || d.Act != registry.ActRun {
		t.Fatalf("adopted %+v: %v", d, err)
	}
	await(again, func(registry.StandingBy) bool { return true })
	cancel()
	joining.Wait()
	for _, g := range all {
		g.awaitContact()
	}
	all.succeed(2)
}

// TestVerdictIsLast: a registry that went back has come to a verdict from there. Who was ahead ends with it, and adopts nothing.
func TestVerdictIsLast(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	kv := rawOf(t, s.URL())
	a := newApp(t, s)
	all := a.assemble(t, 1, quickly)
	_, file := all[0].roster(all[0].membership.Directive().Roster)
	kv.record(a.facts.App+"/verdict/1", registry.Verdict{Version: 1, Run: "1", Outcome: registry.Failed, Class: registry.ClassTimeout, Gen: 1})
	kv.deleteTree(a.facts.App + "/directive")
	for _, g := range all {
		lostData(g)
		if d := g.told(1, registry.ActStop); d.Verdict.Class != registry.ClassTimeout {
			t.Errorf("%s: verdict %+v", g.name(), d.Verdict)
		}
	}
	if d, err := all[0].membership.Adopt(soon(t), file); err == nil && d.Act != registry.ActStop {
		t.Errorf("a run with a verdict was adopted: %+v", d)
	}
}

// settle waits until this agent's client has asked the registry and been answered again.
func (g *agent) settle() {
	g.t.Helper()
	ctx := soon(g.t)
	for g.client.Ping(ctx) != nil {
		if ctx.Err() != nil {
			g.t.Fatal("registry does not come back")
		}
	}
}

// TestConnectionLimit: Consul holds 200 connections of one address; the next is refused, and that has a name.
func TestConnectionLimit(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{Limit: consulserver.StockLimit})
	var held []net.Conn
	for range consulserver.StockLimit {
		c, err := net.Dial("tcp", s.HTTPAddr)
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		held = append(held, c)
	}
	client, err := consul.Open(consul.Config{Address: addressOf(t, s.URL())})
	must(t, err)
	t.Cleanup(client.Close)
	for range 20 { // the answer races with our request: each time it must be named
		if err := client.Ping(soon(t)); !errors.Is(err, registry.ErrTooManyConnections) {
			t.Fatalf("ping beyond the limit: %v", err)
		}
	}
	for _, c := range held {
		must(t, c.Close())
	}
	ctx := soon(t)
	for err = client.Ping(ctx); err != nil && ctx.Err() == nil; err = client.Ping(ctx) {
		if !errors.Is(err, registry.ErrTooManyConnections) {
			t.Fatalf("ping: %v", err)
		}
	}
	must(t, err)
}

// TestTwoConnections: members of a running gang have two connections each, the conductor five.
func TestTwoConnections(t *testing.T) {
	s := consulserver.Start(t, consulserver.Options{})
	count := newCounter(t, s.HTTPAddr)
	a := newApp(t, at("consul://"+count.address))
	all := a.assemble(t, 1)
	all[0].finish(1)
	if most, want := count.most(), 2*len(all)+3; most > want {
		t.Errorf("%d connections at once for %d members, want at most %d", most, len(all), want)
	}
}

const rights = `acl { enabled = true default_policy = "deny" tokens { initial_management = "%s" } }`

// TestForbidden: a token that is unknown, or may nothing, is named.
func TestForbidden(t *testing.T) {
	const root = "11111111-2222-3333-4444-555555555555"
	s := consulserver.Start(t, consulserver.Options{Config: fmt.Sprintf(rights, root), Token: root})
	ping := func(token string) error {
		client, err := consul.Open(consul.Config{Address: addressOf(t, s.URL()), Token: token})
		must(t, err)
		t.Cleanup(client.Close)
		return client.Ping(soon(t))
	}
	must(t, ping(root))
	if err := ping("99999999-2222-3333-4444-555555555555"); !errors.Is(err, registry.ErrForbidden) {
		t.Errorf("an unknown token: %v", err)
	}
	if err := newApp(t, s).agent(t, "worker-0").tryJoin(); !errors.Is(err, registry.ErrForbidden) {
		t.Errorf("join without a right: %v", err)
	}
}

// TestTwoHundred: 200 protocol clients in one process reach their start.
func TestTwoHundred(t *testing.T) {
	const n = 200
	s := consulserver.Start(t, consulserver.Options{})
	a := newApp(t, s, component("worker", n-8, registry.ScopeGang), component("ps", 8, registry.ScopeGang))
	var all gang
	var joined sync.WaitGroup
	for _, c := range a.facts.Components {
		for i := range c.Count {
			g := a.agent(t, fmt.Sprintf("%s-%d", c.Name, i))
			all = append(all, g)
			joined.Go(func() {
				if err := g.tryJoin(); err != nil {
					t.Error(err)
					return
				}
				g.told(1, registry.ActWait)
				g.ready(1)
			})
		}
	}
	joined.Wait()
	if t.Failed() {
		t.FailNow()
	}
	want := all[0].told(1, registry.ActRun).Roster
	for _, g := range all {
		d := g.told(1, registry.ActRun)
		r, _ := g.roster(d.Roster)
		if d.Roster != want || len(r.Rows) != n {
			t.Fatalf("%s: roster %+v of %d rows", g.name(), d.Roster, len(r.Rows))
		}
	}
}
