package conductor_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// Between the explorer's small world and the real Decide and Step: the same questions come up
// millions of times, so the answers are kept.

// claimAnswer is what a newcomer does with its index.
type claimAnswer struct {
	ok, evict, clear bool
	record           wMember
}

type claimKey struct {
	dir      wDir
	old      wMember
	live     bool
	me, host uint8
	oldAlive bool
}

func (x *explorer) claims(w *world, i uint8) claimAnswer {
	a := w.Agents[i]
	m := w.Mem[a.Rank]
	k := claimKey{dir: w.Dirs[w.Cur], old: m, live: w.Live[a.Rank] != 0, me: i, host: a.Host}
	if m.Inc > 0 {
		k.oldAlive = w.Agents[m.Inc-1].St == alive
	}
	if c, ok := x.claimed[k]; ok {
		return c
	}
	c := x.decide(k, a.Rank)
	x.claimed[k] = c
	return c
}

func (x *explorer) decide(k claimKey, rank uint8) claimAnswer {
	in := x.s.instance(rank)
	dir := x.directive(k.dir)
	look := conductor.Snapshot{
		App: &registry.AppRecord{Run: "r", Digest: "d"}, AppIndex: 1, Directive: &dir, DirectiveIndex: 1,
		Instance: in, Now: t0,
	}
	if k.old.Inc > 0 {
		m := member(k.old)
		look.Member, look.MemberIndex = &m, 1
	}
	if k.live {
		look.LiveSession = "s"
	}
	me := conductor.Newcomer{App: "app", Run: "r", Digest: "d", Instance: &in, Launcher: true, Facts: x.facts}
	me.Member = member(wMember{Inc: k.me + 1, Host: k.host})
	life := func(registry.Process) conductor.Life {
		if k.oldAlive {
			return conductor.LifeAlive
		}
		return conductor.LifeDead
	}
	switch d := conductor.Admit(look, me, life).(type) {
	case conductor.Claim:
		if x.s.Without == withoutRecord && d.Proof == conductor.ProofRecord {
			return claimAnswer{}
		}
		return claimAnswer{ok: true, evict: d.Evict != "", clear: d.Clear != nil, record: small(d.Record, k)}
	case conductor.Standby:
		if x.s.Without == withoutGrace && !k.live {
			return claimAnswer{ok: true, record: wMember{Inc: k.me + 1, Host: k.host, Ph: phJoined}}
		}
	case conductor.Wait, conductor.Refuse: // a result that counts; a verdict
	default:
		panic(fmt.Sprintf("unexpected decision %#v for %+v", d, k))
	}
	return claimAnswer{}
}

// ruled is one effect of a Step that writes.
type ruled struct {
	name string
	lost bool
	rank uint8
	dir  wDir
}

type ruleKey struct {
	dir  wDir
	view wView
}

func (x *explorer) rules(d wDir, v wView) []ruled {
	v.Dir = 0
	k := ruleKey{d, v}
	if r, ok := x.ruled[k]; ok {
		return r
	}
	r := x.step(d, v)
	x.ruled[k] = r
	return r
}

// step asks a new conductor about the view at once, and again when every loss timer has run out; what
// it asks to read is answered from the view.
func (x *explorer) step(d wDir, wv wView) []ruled {
	c := conductor.New(x.facts, "conductor")
	if x.s.Continued {
		c.Came = t0.Add(-time.Hour)
	}
	v := x.view(d, wv)
	now := t0
	var effects []conductor.Effect
	for _, wait := range []time.Duration{0, v.Directive.Pause()} { // a pause is over at some time
		now = now.Add(wait)
		c, effects = c.Step(now, v)
		for range 8 {
			read := false
			now = now.Add(time.Millisecond)
			for _, e := range effects {
				switch e.(type) {
				case conductor.ReadReady:
					return nil // the view does not fit together: read anew
				case conductor.ReadRoster:
					r := x.roster(d)
					v.Roster, read = &r, true
				case conductor.ReadRecords:
					v.AllAt, v.CheckpointsAt, read = now, now, true
					for in, rec := range v.Records {
						rec.At = now
						v.Records[in] = rec
					}
				}
			}
			if !read {
				break
			}
			c, effects = c.Step(now, v)
		}
	}
	if v.AllAt.IsZero() { // nothing was missing: time changes nothing
		return x.writes(d, effects)
	}
	now = now.Add(x.facts.Times.LostMass)
	v.AllAt, v.ReadyAt = now, now
	for in, rec := range v.Records {
		rec.At = now
		v.Records[in] = rec
	}
	_, late := c.Step(now, v)
	return x.writes(d, append(effects, late...))
}

func (x *explorer) writes(d wDir, effects []conductor.Effect) []ruled {
	var out []ruled
	for _, e := range effects {
		var r ruled
		switch e := e.(type) {
		case conductor.Seal:
			r = ruled{name: "SEALS", dir: x.sealed(d, e)}
		case conductor.Begin:
			r = ruled{name: "SAVES", dir: d}
		case conductor.Release:
			r = ruled{name: "RELEASES", dir: d}
			r.dir.Held = len(e.Directive.Released) > 0
		case conductor.Rebuild:
			r = ruled{name: "REBUILDS", dir: wDir{Gen: uint8(e.Directive.Gen), Act: actWait, Used: uint8(e.Directive.Budget.Used)}}
			r.dir.Retries, r.dir.Anew = d.Retries, d.Anew
			if e.Directive.Retries.Gen == e.Directive.Gen {
				r.dir.Retries, r.dir.Anew = uint8(e.Directive.Retries.Used), uint8(e.Directive.Gen)
			}
		case conductor.End:
			r = ruled{name: "VERDICT " + string(e.Verdict.Outcome), dir: wDir{Gen: uint8(e.Directive.Gen), Act: actStop, Retries: d.Retries, Anew: d.Anew}}
		case conductor.Lost:
			r = ruled{lost: true, rank: x.s.rank(e.Instance)}
		default:
			continue
		}
		if r.dir.Save, r.dir.Early = saved(e, d), false; r.lost {
			r.dir.Save = 0
		}
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

func (x *explorer) sealed(d wDir, e conductor.Seal) wDir {
	n := wDir{Gen: uint8(e.Directive.Gen), Act: actRun, Used: d.Used, Retries: d.Retries, Anew: d.Anew, Held: len(e.Directive.Released) > 0}
	for _, row := range e.Roster.Rows {
		n.Roster[row.Rank] = wRow{Inc: agentOf(row.Inc), Host: hostNumber(row.Addr)}
	}
	return n
}

func (x *explorer) view(d wDir, wv wView) conductor.View {
	v := conductor.View{
		Directive: x.directive(d), DirectiveIndex: 1, ReadyGen: int(d.Gen), ReadyAt: t0,
		Ready: map[registry.Instance]bool{}, Records: map[registry.Instance]conductor.Record{},
	}
	if wv.Ask {
		v.Asks = []registry.Ask{{Kind: registry.AskStop, ID: "1", By: "stop"}}
	}
	if wv.Save {
		v.Asks = append(v.Asks, registry.Ask{Kind: registry.AskSave, ID: "2"})
	}
	for r := range x.s.Ranks {
		in := x.s.instance(r)
		m, live := wv.Mem[r], wv.Live[r]
		if x.s.Without == withoutAnyPhase && d.Act == actRun && m.Host != d.Roster[r].Host && m.Ph == phFailed {
			m.Ph, live = phReady, false // what the real rule would see is hidden from it
		}
		if x.s.Without == withoutOrder {
			m.Up = d.Gen
		}
		if wv.Ready[r] {
			v.Ready[in] = true
		}
		if m.Inc > 0 {
			v.Records[in] = conductor.Record{Member: member(m), Index: 1, Live: live}
		}
	}
	return v
}

func (x *explorer) directive(d wDir) registry.Directive {
	n := registry.Directive{
		Run: "r", Gen: int(d.Gen), Act: acts[d.Act], Counts: map[string]int{},
		Budget: registry.Budget{Used: int(d.Used)},
	}
	for _, c := range x.facts.Components {
		n.Counts[c.Name] = c.Count
	}
	if n.Retries = (registry.Retries{Used: int(d.Retries), Gen: int(d.Anew)}); d.Retries > 1 {
		n.Rest = 1
	}
	if x.s.Without == withoutAnew {
		n.Retries.Gen = 0
	}
	if d.Save > 0 {
		n.Save = &registry.Save{Seq: int(d.Save), Stamp: "2026_01_01_00_00_00"}
	}
	switch d.Act {
	case actRun:
		n.Roster.ID = fmt.Sprint(d.Gen, "-x")
		if d.Held {
			n.Released = []string{"first"}
		}
	case actStop:
		n.Verdict = &registry.Verdict{Run: "r", Outcome: registry.Stopped}
	}
	return n
}

func (x *explorer) roster(d wDir) registry.Roster {
	r := registry.Roster{Version: 1, Run: "r", Gen: int(d.Gen)}
	for i := range x.s.Ranks {
		row := d.Roster[i]
		r.Rows = append(r.Rows, registry.Row{Instance: x.s.instance(i), Rank: int(i), Inc: incOf(row.Inc), Addr: hostName(row.Host)})
	}
	return r
}

var (
	acts    = [...]registry.Act{"", registry.ActWait, registry.ActRun, registry.ActStop}
	phases  = [...]registry.Phase{"", registry.PhaseJoined, registry.PhaseReady, registry.PhaseEnded, registry.PhaseFailed, registry.PhaseLost, registry.PhaseLeft}
	classes = [...]registry.Class{registry.ClassNone, registry.ClassApp, registry.ClassRegistry, registry.ClassMismatch, registry.ClassApp}
	t0      = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// exploredFacts: workers only; every death of a gang is charged to a budget, so that generations end.
func exploredFacts(s setting) conductor.Facts {
	one := 1
	c := conductor.ComponentFacts{
		Name: "worker", Role: "worker", Count: int(s.Ranks), Scope: registry.ScopeGang, Waited: true, Ends: true, Fails: true,
		MinFailed: &one, Budget: conductor.BudgetRule{Max: -1}, Saves: s.Faults.Saves > 0,
	}
	if s.Instance {
		c.Scope = registry.ScopeInstance
	}
	all := []conductor.ComponentFacts{c}
	if s.Order {
		first := c
		first.Name, first.Count = "first", 1
		c.Count--
		c.After = []conductor.Requirement{{Component: "first", State: conductor.OrderStarted}}
		all = []conductor.ComponentFacts{first, c}
	}
	return conductor.Facts{
		App: "app", Run: "r", Digest: "d", Components: all,
		Times: registry.DefaultTimes(), GangBudget: conductor.BudgetRule{Max: int(s.Budget)},
		Retry: int(s.Retry), Total: conductor.TotalFacts{MinSucceeded: int(s.Enough)},
	}
}

func member(m wMember) registry.Member {
	r := registry.Member{
		Run: "r", Inc: incOf(m.Inc), Addr: hostName(m.Host), Process: registry.Process{Machine: hostName(m.Host), Boot: "b", PidNS: "n", Pid: int(m.Inc), Start: 1}, Gen: int(m.Gen), Up: int(m.Up), Phase: phases[m.Ph],
	}
	if m.Saved > 0 {
		r.Saved = &registry.Saved{Seq: int(m.Saved)}
	}
	if m.ExitGen > 0 {
		r.Exit = &registry.MemberExit{Gen: int(m.ExitGen), Class: classes[m.Cls], Final: m.Cls == clsFinal}
	}
	return r
}

// small is what the explorer keeps of a claim's record.
func small(m registry.Member, k claimKey) wMember {
	r := wMember{Inc: k.me + 1, Host: k.host, Gen: uint8(m.Gen), Up: uint8(m.Up), Ph: uint8(slices.Index(phases[:], m.Phase))}
	if m.Exit != nil {
		r.ExitGen, r.Cls = uint8(m.Exit.Gen), uint8(slices.Index(classes[:], m.Exit.Class))
	}
	if m.Saved != nil {
		r.Saved = uint8(m.Saved.Seq)
	}
	return r
}

// saved is how many saves an effect's directive knows of; one that writes none leaves them as they are.
func saved(e conductor.Effect, d wDir) uint8 {
	var n registry.Directive
	switch e := e.(type) {
	case conductor.Begin:
		n = e.Directive
	case conductor.Seal:
		n = e.Directive
	case conductor.Release:
		n = e.Directive
	case conductor.Rebuild:
		n = e.Directive
	case conductor.End:
		n = e.Directive
	default:
		return d.Save
	}
	return uint8(saves(n))
}

func (s setting) instance(r uint8) registry.Instance {
	switch {
	case !s.Order:
		return registry.Instance{Component: "worker", Index: int(r)}
	case r == 0:
		return registry.Instance{Component: "first"}
	}
	return registry.Instance{Component: "worker", Index: int(r) - 1}
}

func (s setting) rank(in registry.Instance) uint8 {
	if s.Order && in.Component == "worker" {
		return uint8(in.Index) + 1
	}
	return uint8(in.Index)
}

func incOf(n uint8) string {
	if n == 0 {
		return ""
	}
	return string(rune('a' + n - 1))
}

func agentOf(inc string) uint8 {
	if inc == "" {
		return 0
	}
	return inc[0] - 'a' + 1
}

func hostName(n uint8) string {
	if n == 0 {
		return ""
	}
	return string(rune('A' + n - 1))
}

func hostNumber(addr string) uint8 {
	if addr == "" {
		return 0
	}
	return addr[0] - 'A' + 1
}
