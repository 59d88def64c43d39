package registrytest_test

import (
	"errors"
	"testing"

	"github.com/muster-agent/muster/registry"
)

// conductorDies: its session ends, another conducts, nothing is rebuilt, and the run ends right.
func conductorDies(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	dead := all.conductor(t)
	rest := all.without(dead)
	dead.membership.Close()
	kv := rawOf(t, a.url)
	e, _, _ := kv.get(a.facts.App + "/directive")
	kv.destroy(e.Session) // as its end by time would
	after := kv.until(a.facts.App+"/directive", func(now entry, _ bool) bool { return now.Session != "" && now.Session != e.Session })
	if after.Session == "" {
		t.Fatal("nobody conducts")
	}
	next := rest.conductor(t)
	await(next, func(e registry.Conducting) bool { return e.On })
	if d := next.membership.Directive(); d.Gen != 1 || d.Act != registry.ActRun {
		t.Errorf("directive of the next conductor: %+v", d)
	}
	// The dead one comes back; the new conductor forms the next generation.
	back := a.agent(t, dead.me.Instance.String(), holderGone).join()
	append(rest, back).release(2)
}

// sessionEnds: a member's session is ended behind its back: it attaches anew, live and ready, and nobody
// notices.
func sessionEnds(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1, quickly)
	kv := rawOf(t, a.url)
	for _, key := range []string{"/live/worker/1", "/ready/1/worker/1"} {
		old := kv.until(a.facts.App+key, func(_ entry, ok bool) bool { return ok })
		if key == "/live/worker/1" {
			kv.destroy(old.Session)
		}
		kv.until(a.facts.App+key, func(e entry, ok bool) bool { return ok && (e.Session != old.Session || key != "/live/worker/1") })
	}
	live, _, _ := kv.get(a.facts.App + "/live/worker/1")
	ready, _, _ := kv.get(a.facts.App + "/ready/1/worker/1")
	if live.Session == "" || live.Session != ready.Session || string(live.Value) != all[1].me.Member.Inc {
		t.Errorf("live %+v, ready %+v", live, ready)
	}
	// What it writes goes on, also when the writer is the first to notice.
	kv.destroy(live.Session)
	all[1].finish(1)
	all[0].finish(1)
	if d := all[2].told(1, registry.ActStop); d.Verdict.Outcome != registry.Succeeded {
		t.Errorf("verdict %+v", d.Verdict)
	}
	for _, g := range all {
		if n := heard(g, func(registry.SupersededBy) bool { return true }); n != 0 {
			t.Errorf("%s was superseded", g.name())
		}
		if n := heard(g, func(e registry.DirectiveSeen) bool { return e.Directive.Gen > 1 }); n != 0 {
			t.Errorf("%s saw a rebuild", g.name())
		}
	}
}

// superseded: an agent whose index was taken over (a wrong proof, an operator's word) learns it and can
// write no more.
func superseded(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1, quickly)
	next := a.agent(t, "worker-1", holderGone).join()
	e := await(all[1], func(registry.SupersededBy) bool { return true })
	if e.Inc != next.me.Member.Inc {
		t.Errorf("superseded by %s, want %s", e.Inc, next.me.Member.Inc)
	}
	if err := all[1].membership.Restarted(soon(t), 2, registry.Budget{}, nil); !errors.Is(err, registry.ErrSuperseded) {
		t.Errorf("write of a superseded agent: %v", err)
	}
	if m := next.member("worker-1"); m.Inc != next.me.Member.Inc {
		t.Errorf("record %+v", m.Member)
	}
}
