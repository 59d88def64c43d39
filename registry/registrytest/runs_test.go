package registrytest_test

import (
	"errors"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// succeed ends the run of a generation with success, and everybody leaves.
func (all gang) succeed(gen int) {
	all.finish(gen)
	all.each((*agent).leave)
}

// finish has the workers end with 0, and all hear the verdict.
func (all gang) finish(gen int) {
	all.each(func(g *agent) {
		if g.membership.Instance().Component == "worker" {
			g.finish(gen)
		}
	})
	all.each(func(g *agent) { g.told(gen, registry.ActStop) })
}

func anotherOne(g *agent) { g.me.NewRun = true }

// finishedNeverLives: the agent of a run that has ended gets the verdict of that run, while others run and after them.
func finishedNeverLives(t *testing.T, s server) {
	a := newApp(t, s)
	late := func() {
		t.Helper()
		err := a.agent(t, "worker-0", anotherOne, func(g *agent) { g.me.Run, g.me.Digest = "1", "digest-1" }).tryJoin()
		f, ok := errors.AsType[*conductor.FinishedError](err)
		if !ok || f.Verdict.Run != "1" || f.Verdict.Outcome != registry.Succeeded {
			t.Errorf("an agent of run 1: %v", err)
		}
	}
	a.assemble(t, 1).succeed(1)
	a.facts.Run, a.facts.Digest = "2", "digest-2"
	second := a.assemble(t, 2, anotherOne)
	late()
	second.succeed(2)
	late()
	a.facts.Run = "3"
	a.assemble(t, 3, anotherOne).succeed(3)
}

// verdictIsThere: a run whose verdict is there already ends with that; its conductor does not ask for ever.
func verdictIsThere(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	there := registry.Verdict{Version: 1, Run: "1", Outcome: registry.Stopped, Class: registry.ClassStopped, Cause: "long ago", Gen: 1}
	rawOf(t, s.URL()).record(a.facts.App+"/verdict/1", there)
	all[0].finish(1)
	all[1].finish(1)
	all.each(func(g *agent) {
		if d := g.told(1, registry.ActStop); d.Verdict == nil || d.Verdict.Cause != "long ago" {
			t.Errorf("%s: verdict %+v", g.name(), d.Verdict)
		}
	})
}

// asksOfTheLastRun: what was asked of one run is not carried out against the next.
func asksOfTheLastRun(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	first := a.assemble(t, 1)
	first.succeed(1)
	for _, kind := range []string{registry.AskStop, registry.AskFlex, registry.AskSave} {
		err := first[0].client.Ask(soon(t), a.facts.App, registry.Ask{Kind: kind, By: "stop", Args: map[string]string{"worker": "1"}})
		if f, ok := errors.AsType[*conductor.FinishedError](err); !ok || f.Verdict.Run != "1" {
			t.Errorf("%s of a finished run: %v", kind, err)
		}
	}
	// as somebody asked who had looked before the end
	stop := registry.Ask{Kind: registry.AskStop, ID: "early", By: "stop", Run: "1", Gen: 1}
	kv.record(a.facts.App+"/ask/stop/early", stop)
	a.facts.Run = "2"
	second := a.assemble(t, 2, anotherOne)
	stop.ID = "late"
	kv.record(a.facts.App+"/ask/stop/late", stop)
	flex := registry.Ask{Kind: registry.AskFlex, ID: "late", Run: "1", Gen: 1, Args: map[string]string{"worker": "1"}}
	kv.record(a.facts.App+"/ask/flex/late", flex)
	for _, key := range []string{"/ask/stop/early", "/ask/stop/late", "/ask/flex/late"} {
		kv.until(a.facts.App+key, func(_ entry, ok bool) bool { return !ok })
	}
	if d := second[0].status().Directive; d.Run != "2" || d.Act != registry.ActRun || d.Gen != 2 {
		t.Errorf("run 2: %+v", d)
	}
}

// asksOfNobody: a request to a run that nobody was there to serve is not carried out when it is taken up again.
func asksOfNobody(t *testing.T, s server) {
	a := newApp(t, s)
	all := a.assemble(t, 1)
	all.each(func(g *agent) { g.fail(1, registry.ClassLauncher) })
	all.each((*agent).leave)
	d := all[0].status().Directive
	kv := rawOf(t, s.URL())
	kv.record(a.facts.App+"/ask/stop/yesterday", registry.Ask{
		Kind: registry.AskStop, ID: "yesterday", By: "stop", Run: "1", Gen: d.Gen,
	})
	var again gang
	for _, g := range all {
		again = append(again, a.agent(t, g.membership.Instance().String()).join())
	}
	kv.until(a.facts.App+"/ask/stop/yesterday", func(_ entry, ok bool) bool { return !ok })
	gen := d.Gen
	if d.Act == registry.ActRun {
		gen++
	}
	again.release(gen)
	must(t, again[0].client.Ask(soon(t), a.facts.App, registry.Ask{Kind: registry.AskStop, By: "stop"}))
	again.each(func(g *agent) { g.told(gen, registry.ActStop) })
}

// askedAgain: a request that the registry has lost is made again, while its run has no verdict.
func askedAgain(t *testing.T, s server) {
	a := newApp(t, s)
	kv := rawOf(t, s.URL())
	all := a.assemble(t, 1)
	client := all[0].client
	again := func(ask registry.Ask, want bool) {
		t.Helper()
		if got, err := client.AskAgain(soon(t), a.facts.App, ask); err != nil || got != want {
			t.Errorf("%s %s of run %s: asked again %t, %v; want %t", ask.Kind, ask.ID, ask.Run, got, err, want)
		}
	}
	gone := registry.Ask{Kind: registry.AskGone, ID: "there", By: "stop", Run: "1", Args: map[string]string{"instance": "worker-9", "inc": "x"}} // nobody takes that away
	must(t, client.Ask(soon(t), a.facts.App, gone))
	again(gone, false)
	again(registry.Ask{Kind: registry.AskStop, ID: "other", By: "stop", Run: "2"}, false)
	if keys := kv.keys(a.facts.App + "/ask/stop/"); len(keys) != 0 {
		t.Errorf("another run was asked: %q", keys)
	}
	again(registry.Ask{Kind: registry.AskStop, ID: "lost", By: "stop", Run: "1"}, true)
	all.each(func(g *agent) { g.told(1, registry.ActStop) })
	kv.until(a.facts.App+"/ask/stop/lost", func(_ entry, ok bool) bool { return !ok }) // it goes with or after the verdict
	again(registry.Ask{Kind: registry.AskStop, ID: "lost", By: "stop", Run: "1"}, false)
	if keys := kv.keys(a.facts.App + "/ask/stop/"); len(keys) != 0 {
		t.Errorf("a finished run was asked: %q", keys)
	}
}

// followedUnderANewLeader: who follows an app believes that it does not exist only when the registry is sure of that.
func followedUnderANewLeader(t *testing.T, s server) {
	a := newApp(t, s)
	a.assemble(t, 1).succeed(1)
	client := a.through(elected(t, s)).agent(t, "worker-0").client
	if v, err := client.WaitVerdict(soon(t), a.facts.App, "1"); err != nil || v.Outcome != registry.Succeeded {
		t.Errorf("verdict %+v, %v", v, err)
	}
	if _, err := client.WaitVerdict(soon(t), a.facts.App+"x", "1"); !errors.Is(err, registry.ErrNoApp) {
		t.Errorf("an app that does not exist: %v", err)
	}
}
