package registrytest_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// form: the first founds and conducts, all claim and acknowledge, one roster is sealed.
func form(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	d := all[0].membership.Directive()
	want, file := all[0].roster(d.Roster)
	if len(want.Rows) != 3 || want.Gen != 1 || want.Run != "1" {
		t.Fatalf("roster %+v", want)
	}
	for i, g := range all {
		row := want.Rows[i]
		if row.Rank != i || row.Instance != g.membership.Instance() || row.Inc != g.me.Member.Inc || row.Addr == "" {
			t.Errorf("row %d is %+v, want %s of %s", i, row, g.membership.Instance(), g.me.Member.Inc)
		}
		if _, read := g.roster(d.Roster); !bytes.Equal(read, file) {
			t.Errorf("%s reads another roster", g.name())
		}
	}
	ask := []registry.Instance{want.Rows[1].Instance}
	for i := range 200 { // more than one transaction reads
		ask = append(ask, registry.Instance{Component: want.Rows[0].Component, Index: 77 + i})
	}
	members, err := all[0].membership.Members(soon(t), ask)
	must(t, err)
	if m := members[want.Rows[1].Instance]; len(members) != 1 || m.Inc != all[1].me.Member.Inc {
		t.Errorf("records %+v, want that of %s alone", members, want.Rows[1].Instance)
	}
	st := all[2].status()
	if st.Live != 3 || len(st.Members) != 3 || st.Conductor != "worker-0" || st.Directive.Act != registry.ActRun {
		t.Errorf("status %+v", st)
	}
}

// claimAny: newcomers without an index take all there are, each one.
func claimAny(t *testing.T, s server) {
	a := newApp(t, s)
	var all gang
	var joined sync.WaitGroup
	for range 3 {
		g := a.agent(t, "")
		all = append(all, g)
		joined.Go(func() {
			if err := g.tryJoin(); err != nil {
				t.Error(err)
			}
		})
	}
	joined.Wait()
	taken := map[registry.Instance]bool{}
	for _, g := range all {
		taken[g.membership.Instance()] = true
	}
	if len(taken) != 3 {
		t.Errorf("taken: %v", taken)
	}
	all.release(1)
}

// foundersAtOnce: of many who find nothing one founds, and all join it.
func foundersAtOnce(t *testing.T, s server) {
	a := newApp(t, s, component("worker", 8, registry.ScopeGang))
	var all gang
	var joined sync.WaitGroup
	for _, name := range []string{"worker-0", "worker-1", "worker-2", "worker-3", "worker-4", "worker-5", "worker-6", "worker-7"} {
		g := a.agent(t, name)
		all = append(all, g)
		joined.Go(func() {
			if err := g.tryJoin(); err != nil {
				t.Error(err)
			}
		})
	}
	joined.Wait()
	all.release(1)
	conducting := 0
	for _, g := range all {
		conducting += heard(g, func(e registry.Conducting) bool { return e.On })
	}
	if conducting != 1 {
		t.Errorf("%d conducted, want 1", conducting)
	}
}

// succeeded: all workers end with 0; one verdict, seen by all and by who waits for it.
func succeeded(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	watcher := a.agent(t, "")
	verdict := make(chan registry.Verdict, 1)
	go func() {
		v, err := watcher.client.WaitVerdict(soon(t), a.facts.App, "")
		if err != nil {
			t.Error(err)
		}
		verdict <- v
	}()
	all[0].finish(1)
	all[1].finish(1)
	for _, g := range all {
		if d := g.told(1, registry.ActStop); d.Verdict == nil || d.Verdict.Outcome != registry.Succeeded {
			t.Errorf("%s: verdict %+v", g.name(), d.Verdict)
		}
	}
	if v := <-verdict; v.Outcome != registry.Succeeded || v.Run != "1" {
		t.Errorf("waited for %+v", v)
	}
	if v, err := watcher.client.Verdict(soon(t), a.facts.App, "1"); err != nil || v == nil || v.Outcome != registry.Succeeded {
		t.Errorf("verdict/1 is %+v, %v", v, err)
	}
	all.each((*agent).leave)
	if m := all[0].member("worker-0"); m.Phase != registry.PhaseEnded || m.Live {
		t.Errorf("worker-0 after leaving: %s, live %t; a result stays", m.Phase, m.Live)
	}
	if m := all[0].member("ps-0"); m.Phase != registry.PhaseLeft {
		t.Errorf("ps-0 after leaving: %s", m.Phase)
	}
}

// finished: the same run answers with its verdict; another run id begins at the next generation.
func finished(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	all[0].finish(1)
	all[1].finish(1)
	all.each(func(g *agent) { g.told(1, registry.ActStop) })
	all.each((*agent).leave)

	err := a.agent(t, "worker-0").tryJoin()
	if f, ok := errors.AsType[*conductor.FinishedError](err); !ok || f.Verdict.Outcome != registry.Succeeded {
		t.Fatalf("join of the finished run: %v", err)
	}
	a.facts.Run, a.facts.Digest = "2", "digest-2"
	again := a.assemble(t, 2, func(g *agent) { g.me.NewRun = true })
	again[0].finish(2)
	again[1].finish(2)
	if d := again[2].told(2, registry.ActStop); d.Run != "2" || d.Verdict == nil || d.Verdict.Run != "2" {
		t.Errorf("second run ends with %+v", d)
	}
}

// overtaken: nobody can acknowledge a generation that is over.
func overtaken(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	all[1].fail(1, registry.ClassApp)
	all[0].told(2, registry.ActWait)
	if err := all[0].membership.Acknowledge(soon(t), 1, nil); !errors.Is(err, registry.ErrOvertaken) {
		t.Errorf("acknowledge 1 under 2: %v", err)
	}
	all.release(2)
	// T4b: failed after it acknowledged, before the release, is allowed only before it.
	all[0].fail(2, registry.ClassApp)
	all[0].told(3, registry.ActWait)
	all[0].ready(3)
	all[0].fail(3, registry.ClassApp)
	all[0].ready(3)
	all[1:].each(func(g *agent) { g.told(3, registry.ActWait); g.ready(3) })
	all.each(func(g *agent) { g.told(3, registry.ActRun) })
	if err := all[0].membership.Acknowledge(soon(t), 3, nil); !errors.Is(err, registry.ErrOvertaken) {
		t.Errorf("acknowledge 3 again after its release: %v", err)
	}
}
