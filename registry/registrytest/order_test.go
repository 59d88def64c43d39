package registrytest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// orders: the workers are released when every ps has reported that it is up; a restart takes nothing back, a
// new generation begins anew.
func orders(t *testing.T, s server) {
	ps, worker := component("ps", 2, registry.ScopeGang), component("worker", 1, registry.ScopeGang)
	worker.After = []conductor.Requirement{{Component: "ps", State: conductor.OrderStarted}}
	a := newApp(t, s, ps, worker)
	all := a.assemble(t, 1)
	first := func(d registry.Directive) {
		t.Helper()
		if !slices.Equal(d.Released, []string{"ps"}) || d.Why != "waiting for ps to have started: ps-0, ps-1" {
			t.Errorf("sealed with %v released (%s)", d.Released, d.Why)
		}
	}
	first(all[2].told(1, registry.ActRun))
	all[0].up(1)
	all[1].up(1)
	d := all[2].released(1)
	if d.Seq != 3 || d.Roster.ID == "" {
		t.Errorf("released by %+v", d)
	}
	if m := all[2].member("ps-1"); m.Up != 1 || m.Phase != registry.PhaseReady || !m.Live {
		t.Errorf("record of ps-1: %+v", m.Member)
	}
	all[0].fail(1, registry.ClassApp)
	all.release(2)
	first(all[2].told(2, registry.ActRun))
	if err := all[0].membership.Up(soon(t), 1, nil); !errors.Is(err, registry.ErrOvertaken) {
		t.Errorf("up in an old generation: %v", err)
	}
	all[0].up(2)
	all[1].up(2)
	all[2].released(2)
}

// upOnce: what the record says already is not written again, and what it does not say is.
func upOnce(t *testing.T, s server) {
	a := newApp(t, s, component("worker", 1, registry.ScopeInstance))
	all := a.assemble(t, 1)
	g := all[0]
	attempt := func(n int) func(*registry.Member) { return func(m *registry.Member) { m.Attempt = n } }
	must(t, g.membership.Up(soon(t), 1, attempt(1)))
	kv := rawOf(t, a.url)
	_, before, _ := kv.get(a.facts.App + "/members/worker/0")
	must(t, g.membership.Up(soon(t), 1, attempt(1)))
	_, after, _ := kv.get(a.facts.App + "/members/worker/0")
	if before != after {
		t.Errorf("the same word was written twice: index %s, then %s", before, after)
	}
	must(t, g.membership.Up(soon(t), 1, attempt(2)))
	if m := g.member("worker-0"); m.Up != 1 || m.Attempt != 2 || m.Gen != 1 {
		t.Errorf("got %+v", m.Member)
	}
	g.leave()
	if err := g.membership.Up(soon(t), 1, nil); err == nil {
		t.Error("up after leaving was accepted")
	}
}

// up reports that the process serves.
func (g *agent) up(gen int) {
	g.t.Helper()
	must(g.t, g.membership.Up(soon(g.t), gen, nil))
}

// released waits until all may start.
func (g *agent) released(gen int) registry.Directive {
	g.t.Helper()
	return await(g, func(e registry.DirectiveSeen) bool {
		return e.Directive.Gen == gen && e.Directive.Act == registry.ActRun && len(e.Directive.Released) == 0
	}).Directive
}
