package conductor_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// gang is a registry in memory with one conductor and virtual time: tests say what members do and
// look at the directives that come of it.
type gang struct {
	t      testing.TB
	facts  conductor.Facts
	now    time.Time
	c      conductor.State
	view   conductor.View
	dir    registry.Directive
	index  uint64
	roster *registry.Roster

	ready   map[registry.Instance]int // generation of the ready key
	live    map[registry.Instance]bool
	records map[registry.Instance]conductor.Record
	steps   map[registry.Instance]registry.Checkpoint
	here    map[string]registry.Here // what folders have, of those that acknowledge from now on
	asks    []registry.Ask

	directives []registry.Directive // all that were written
	last       []conductor.Effect
	cleaned    bool
	reads      int
}

func one() *int { return new(1) }

func component(name, role string, count int, scope string) conductor.ComponentFacts {
	c := conductor.ComponentFacts{
		Name: name, Role: role, Count: count, Scope: scope, Waited: true, Fails: true,
		Ends: role == "worker" || role == "chief", MinFailed: one(), Budget: conductor.BudgetRule{Max: 5, Window: 5 * time.Minute},
	}
	if role == "service" {
		c.Waited, c.Fails, c.MinFailed = false, false, nil
	}
	return c
}

func factsOf(components ...conductor.ComponentFacts) conductor.Facts {
	return conductor.Facts{
		App: "app", Run: "r", Digest: "d", Components: components, Barrier: 30 * time.Minute,
		Times: registry.DefaultTimes(), GangBudget: conductor.BudgetRule{Max: 5, Window: 5 * time.Minute},
		StopGrace: 10 * time.Second,
	}
}

func newGang(t testing.TB, f conductor.Facts) *gang {
	g := &gang{
		t: t, facts: f, now: t0, index: 1,
		dir:   registry.Directive{Run: "r", Gen: 1, Act: registry.ActWait, Seq: 1, Counts: map[string]int{}},
		ready: map[registry.Instance]int{}, live: map[registry.Instance]bool{},
		records: map[registry.Instance]conductor.Record{}, steps: map[registry.Instance]registry.Checkpoint{},
	}
	for _, c := range f.Components {
		g.dir.Counts[c.Name] = c.Count
	}
	g.newConductor("c1")
	return g
}

func (g *gang) newConductor(inc string) {
	g.c = conductor.New(g.facts, inc)
	g.view = conductor.View{Directive: g.dir, DirectiveIndex: g.index}
}

// in parses `worker-1`.
func in(s string) registry.Instance {
	i, err := registry.ParseInstance(s)
	if err != nil {
		panic(err)
	}
	return i
}

// join claims an index with the incarnation and host.
func (g *gang) join(name, inc, host string) {
	i := in(name)
	old := g.records[i]
	m := registry.Member{Run: g.dir.Run, Inc: inc, Was: old.Inc, Addr: host, Host: host, Phase: registry.PhaseJoined, Attempt: 1, Budget: old.Budget}
	g.live[i] = true
	delete(g.ready, i)
	g.put(i, m)
}

// publish tells the exports without acknowledging: a newcomer's, or a service's.
func (g *gang) publish(name string) {
	r := g.records[in(name)]
	r.Exports = map[string]string{"exports.url": name}
	g.put(in(name), r.Member)
}

// up reports that the process serves.
func (g *gang) up(name string) {
	r := g.records[in(name)]
	r.Up = g.dir.Gen
	g.put(in(name), r.Member)
	g.pass(5 * time.Second)
}

// ack acknowledges the directive's generation (T4).
func (g *gang) ack(name string) {
	i := in(name)
	r := g.records[i]
	r.Gen, r.Phase, r.Exit = g.dir.Gen, registry.PhaseReady, nil
	if h, ok := g.here[name]; ok {
		r.Here = &h
	}
	if r.Address == "" {
		r.Address = fmt.Sprintf("%s:%d", r.Addr, 2000+i.Index)
	}
	g.put(i, r.Member)
	if c := g.component(i); c.Waited {
		g.ready[i] = g.dir.Gen
	}
}

func (g *gang) component(i registry.Instance) conductor.ComponentFacts {
	for _, c := range g.facts.Components {
		if c.Name == i.Component {
			return c
		}
	}
	g.t.Fatalf("no component %s", i.Component)
	return conductor.ComponentFacts{}
}

// report is T10.
func (g *gang) report(name string, phase registry.Phase, exit registry.MemberExit) {
	i := in(name)
	r := g.records[i]
	exit.Gen = r.Gen
	r.Phase, r.Exit = phase, &exit
	g.put(i, r.Member)
	delete(g.ready, i)
}

func (g *gang) end(name string) {
	g.report(name, registry.PhaseEnded, registry.MemberExit{Code: new(0)})
}

func (g *gang) fail(name string, code int) {
	g.report(name, registry.PhaseFailed, registry.MemberExit{Code: &code, Class: registry.ClassApp})
}

func (g *gang) failFinal(name string, code int) {
	g.report(name, registry.PhaseFailed, registry.MemberExit{Code: &code, Class: registry.ClassApp, Final: true})
}

// die is the end of an agent's session.
func (g *gang) die(name string) {
	delete(g.ready, in(name))
	delete(g.live, in(name))
}

// leave is T14 after a TERM.
func (g *gang) leave(name string) {
	g.report(name, registry.PhaseFailed, registry.MemberExit{Signal: 15, Class: registry.ClassLauncher})
	r := g.records[in(name)]
	r.Phase = registry.PhaseLeft
	g.put(in(name), r.Member)
	g.die(name)
}

// newRun is T15: the directive of the next run, with other components, after the last one has ended.
func (g *gang) newRun(components ...conductor.ComponentFacts) {
	last := g.dir
	last.Verdict = &registry.Verdict{Run: last.Run, Outcome: registry.Stopped}
	g.facts.Components = components
	first := registry.Instance{Component: components[0].Name}
	me := conductor.Newcomer{Run: last.Run + "+", NewRun: true, Facts: g.facts, Instance: &first, Member: registry.Member{Inc: "founder"}}
	look := conductor.Snapshot{Instance: first, App: &registry.AppRecord{Run: last.Run}, Directive: &last, Now: g.now}
	g.dir = conductor.Admit(look, me, nil).(conductor.NewRun).Directive
	g.index++
}

func (g *gang) put(i registry.Instance, m registry.Member) {
	g.index++
	g.records[i] = conductor.Record{Member: m, Index: g.index}
}

// all lets every instance of the counts join and acknowledge.
func (g *gang) all() {
	for _, i := range g.facts.Instances(g.dir) {
		if _, ok := g.records[i]; !ok {
			g.join(i.String(), "inc-"+i.String(), "h"+i.String())
		}
		g.ack(i.String())
	}
	g.settle()
}

// running forms the first generation.
func running(t testing.TB, f conductor.Facts) *gang {
	g := newGang(t, f)
	g.settle()
	g.all()
	g.want(registry.ActRun, 1)
	return g
}

// settle gives the conductor what changed and does what it says until it waits.
func (g *gang) settle() {
	g.t.Helper()
	g.now = g.now.Add(time.Millisecond)
	g.readReady()
	g.view.Asks = g.asks
	g.run()
}

func (g *gang) run() {
	g.t.Helper()
	for range 50 {
		var effects []conductor.Effect
		g.c, effects = g.c.Step(g.now, g.view)
		g.view.Trouble = 0
		g.last = effects
		if !g.do(effects) {
			return
		}
	}
	g.t.Fatalf("the conductor does not come to rest: %#v", g.last)
}

// do carries out effects; false when there was nothing but to wait.
func (g *gang) do(effects []conductor.Effect) (more bool) {
	g.t.Helper()
	for _, e := range effects {
		switch e := e.(type) {
		case conductor.Wake:
			if !e.At.After(g.now) {
				g.t.Fatalf("wake at %s, which is not after %s", e.At, g.now)
			}
			continue
		case conductor.StepDown:
			return false
		case conductor.CleanUp:
			g.ready, g.asks, g.cleaned = map[registry.Instance]int{}, nil, true
		case conductor.ReadReady:
			g.readReady()
		case conductor.ReadRecords:
			g.readRecords(e)
		case conductor.ReadRoster:
			g.view.Roster = g.roster
		case conductor.Seal:
			g.roster, g.view.Roster = &e.Roster, &e.Roster
			g.write(e.Index, e.Directive)
		case conductor.Rebuild:
			g.write(e.Index, e.Directive)
		case conductor.Release:
			g.write(e.Index, e.Directive)
		case conductor.Retarget:
			g.write(e.Index, e.Directive)
		case conductor.Begin:
			g.begun(e.Directive)
			g.write(e.Index, e.Directive)
		case conductor.End:
			g.write(e.Index, e.Directive)
		case conductor.Lost:
			if e.Index != g.records[e.Instance].Index || g.live[e.Instance] {
				g.t.Fatalf("%s declared lost from a stale view", e.Instance)
			}
			g.put(e.Instance, e.Member)
			g.readRecords(conductor.ReadRecords{Of: []registry.Instance{e.Instance}})
		case conductor.DropAsk:
			g.asks = slices.DeleteFunc(slices.Clone(g.asks), func(a registry.Ask) bool { return a.ID == e.Ask.ID })
			g.view.Asks = g.asks
		}
		more = true
	}
	return more
}

func (g *gang) readReady() {
	ready := map[registry.Instance]bool{}
	for i, gen := range g.ready {
		if gen == g.dir.Gen {
			ready[i] = true
		}
	}
	g.view.Ready, g.view.ReadyGen, g.view.ReadyAt = ready, g.dir.Gen, g.now
}

func (g *gang) readRecords(e conductor.ReadRecords) {
	g.reads++
	records := maps.Clone(g.view.Records)
	if e.All || records == nil {
		records = map[registry.Instance]conductor.Record{}
	}
	read := func(i registry.Instance) {
		r := g.records[i]
		r.At, r.Live = g.now, g.live[i]
		records[i] = r
	}
	if e.All {
		for i := range g.records {
			read(i)
		}
		g.view.AllAt = g.now
	}
	for _, i := range e.Of {
		read(i)
	}
	g.view.Records = records
	if e.Checkpoints {
		g.view.Checkpoints, g.view.CheckpointsAt = g.steps, g.now
	}
}

// write checks what every directive must keep, and makes it the current one.
func (g *gang) write(index uint64, d registry.Directive) {
	g.t.Helper()
	if index != g.view.DirectiveIndex {
		g.t.Fatalf("written against index %d, read was %d", index, g.view.DirectiveIndex)
	}
	g.checkOrder(g.dir, d)
	g.index++
	g.dir = d
	g.directives = append(g.directives, d)
	g.view.Directive, g.view.DirectiveIndex = d, g.index
}

var actOrder = map[registry.Act]int{registry.ActWait: 1, registry.ActRun: 2, registry.ActStop: 3}

func (g *gang) checkOrder(old, d registry.Directive) {
	g.t.Helper()
	older := d.Gen < old.Gen || d.Gen == old.Gen && actOrder[d.Act] < actOrder[old.Act]
	switch {
	case old.Act == registry.ActStop:
		g.t.Fatalf("a directive after the verdict: %+v", d)
	case older || d.Seq != old.Seq+1:
		g.t.Fatalf("the directive went back from (%d, %s, seq %d) to (%d, %s, seq %d)", old.Gen, old.Act, old.Seq, d.Gen, d.Act, d.Seq)
	case g.facts.GangBudget.Max >= 0 && d.Budget.Used > g.facts.GangBudget.Max:
		g.t.Fatalf("budget %d exceeds %d", d.Budget.Used, g.facts.GangBudget.Max)
	case g.facts.Retry >= 0 && d.Retries.Used > g.facts.Retry:
		g.t.Fatalf("%d retries exceed %d", d.Retries.Used, g.facts.Retry)
	case d.Retries.Gen < old.Retries.Gen || d.Retries.Gen > d.Gen || d.Retries.Used < old.Retries.Used || d.Retries.Free < old.Retries.Free:
		g.t.Fatalf("retries went back from %+v to %+v in generation %d", old.Retries, d.Retries, d.Gen)
	case saves(d) < saves(old) || saves(d) > saves(old)+1 || saves(d) != saves(old) && (d.Act != registry.ActRun || old.Act != registry.ActRun || d.Gen != old.Gen):
		g.t.Fatalf("saves went from %+v to %+v in generation %d %s", old.Save, d.Save, d.Gen, d.Act)
	case d.Retries.Gen != old.Retries.Gen && (d.Act != registry.ActWait || d.Gen != old.Gen+1):
		g.t.Fatalf("formed anew in %+v of generation %d %s", d.Retries, d.Gen, d.Act)
	}
}

// pass lets time go by, waking the conductor when it asked for it.
func (g *gang) pass(d time.Duration) {
	g.t.Helper()
	end := g.now.Add(d)
	g.settle()
	for range 100_000 {
		wake := end
		for _, e := range g.last {
			if w, ok := e.(conductor.Wake); ok && w.At.Before(wake) {
				wake = w.At
			}
		}
		g.now = wake
		if g.run(); !g.now.Before(end) || g.dir.Act == registry.ActStop {
			return
		}
	}
	g.t.Fatal("the conductor wakes without end")
}

func (g *gang) want(act registry.Act, gen int) {
	g.t.Helper()
	if g.dir.Act != act || g.dir.Gen != gen {
		g.t.Fatalf("got generation %d %s (%s), want %d %s", g.dir.Gen, g.dir.Act, g.dir.Why, gen, act)
	}
}

func (g *gang) wantVerdict(o registry.Outcome, class registry.Class, first, cause string) {
	g.t.Helper()
	v := g.dir.Verdict
	if v == nil {
		g.t.Fatalf("got no verdict but generation %d %s (%s), want %s", g.dir.Gen, g.dir.Act, g.dir.Why, o)
	}
	if v.Outcome != o || v.Class != class || v.First != first || v.Cause != cause {
		g.t.Fatalf("got %s class %q first %q cause %q\nwant %s class %q first %q cause %q", v.Outcome, v.Class, v.First, v.Cause, o, class, first, cause)
	}
	if _, effects := g.c.Step(g.now, g.view); len(effects) != 2 || !g.cleaned {
		g.t.Fatalf("after the verdict: got %#v, want only clean-up", effects)
	}
}

func saves(d registry.Directive) int {
	if d.Save == nil {
		return 0
	}
	return d.Save.Seq
}

// begun holds what must be when a save begins: nobody who is at work is still at the one before, and no two have one stamp.
func (g *gang) begun(d registry.Directive) {
	g.t.Helper()
	old := g.dir.Save
	if old == nil {
		return
	}
	if d.Save.Stamp <= old.Stamp {
		g.t.Fatalf("save %d of %s after save %d of %s", d.Save.Seq, d.Save.Stamp, old.Seq, old.Stamp)
	}
	for i, gen := range g.ready {
		m := g.records[i].Member
		if gen == g.dir.Gen && g.component(i).Saves && (m.Saved == nil || m.Saved.Seq < old.Seq) {
			g.t.Fatalf("save %d begins while %s is at save %d", d.Save.Seq, i, old.Seq)
		}
	}
}

// saved answers the save under way.
func (g *gang) saved(name string) {
	i := in(name)
	r := g.records[i]
	r.Saved = &registry.Saved{Seq: saves(g.dir), Files: 1}
	g.put(i, r.Member)
}
