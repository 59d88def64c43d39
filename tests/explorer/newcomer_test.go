package explorer

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/machine"
)

// joining is a newcomer on its way to an index.
type joining struct {
	Step    int
	Look    conductor.Snapshot
	D       conductor.Admission
	Session string
	Held    string
	Next    time.Time // of the next look
	Index   uint64    // of the directive when it began to wait
	Lock    string    // session of the directive then
	Born    time.Duration
	Idle    bool // it waits behind a holder
}

// The steps of a newcomer: each is one request.
const (
	toLook = iota
	toReadLive
	toAct
	toClaim
	toVerify
	toWait
)

func (w *world) joinReady(i int) bool {
	a := &w.Agents[i]
	if a.Joining.Step != toWait {
		return true
	}
	if !w.Now.Before(a.Joining.Next) || a.Watch.Index != a.Joining.Index || a.Watch.Session != a.Joining.Lock {
		return true
	}
	m := a.Joining.Look.Member
	_, behind := a.Joining.D.(conductor.Standby)
	return behind && conductor.SamePIDs(m.Process, a.Machine) && w.life(m.Process) == conductor.LifeDead
}

// life is what /proc says of an agent's process.
func (w *world) life(p registry.Process) conductor.Life {
	if k := p.Pid - 1; k >= 0 && k < len(w.Agents) && w.Agents[k].Life == alive {
		return conductor.LifeAlive
	}
	return conductor.LifeDead
}

func (w *world) newcomer(a *agent) conductor.Newcomer {
	f := w.facts(a)
	return conductor.Newcomer{
		App: "app", Run: f.Run, NewRun: true, Digest: "d", Instance: &a.In, Launcher: !w.S.Shell, Facts: f,
		Record: registry.AppRecord{Run: f.Run, Digest: "d"},
		Member: registry.Member{
			Run: f.Run, Inc: a.Inc, Addr: hostName(a.Host), Host: hostName(a.Host), Process: a.Machine, Digest: "d",
			Origin: registry.Origin{Since: t0},
		},
	}
}

func (w *world) join(i int, how way) {
	a := &w.Agents[i]
	j := &a.Joining
	switch j.Step {
	case toLook, toWait:
		w.look(i)
	case toReadLive:
		j.Look.AnyLive = len(w.KV.under("live/")) > 0
		w.admit(i)
	case toAct:
		w.act(i, how)
	case toClaim:
		w.claim(i, how)
	case toVerify:
		w.verify(i)
	}
}

// look is T1.
func (w *world) look(i int) {
	a := &w.Agents[i]
	l := conductor.Snapshot{Instance: a.In, Now: w.Now, Seen: a.Watch.Known}
	if v, e, ok := read[registry.AppRecord](w.KV, keyApp); ok {
		l.App, l.AppIndex = &v, e.Index
	}
	if v, e, ok := read[registry.Directive](w.KV, keyDirective); ok {
		l.Directive, l.DirectiveIndex, l.DirectiveSession = &v, e.Index, e.Session
	}
	if v, e, ok := read[registry.Member](w.KV, keyMember(a.In)); ok {
		l.Member, l.MemberIndex = &v, e.Index
	}
	if v, e, ok := read[string](w.KV, keyLive(a.In)); ok {
		l.LiveSession, l.LiveInc, l.LiveIndex = e.Session, v, e.Index
	}
	if v, _, ok := read[registry.Verdict](w.KV, keyVerdict(w.facts(a).Run)); ok && !w.S.without(noVerdict) {
		l.Verdict = &v
	}
	for _, k := range w.KV.under("ask/" + registry.AskGone + "/") {
		v, _, _ := read[registry.Ask](w.KV, k)
		l.Asks = append(l.Asks, v)
	}
	a.Joining.Look = l
	if l.Directive != nil && !(l.Directive.Run == w.facts(a).Run && l.DirectiveSession != "") {
		a.Joining.Step = toReadLive
		return
	}
	w.admit(i)
}

// admit asks for the decision about what was read.
func (w *world) admit(i int) {
	a := &w.Agents[i]
	j := &a.Joining
	l := &j.Look
	switch {
	case w.S.without(noHolders):
		l.Seen = false
	case l.MayHaveLost(w.newcomer(a)):
		l.Holders = w.holders(j.Session, l.Directive != nil)
	}
	alive := func(registry.Process) conductor.Life { return w.life(l.Member.Process) }
	d := conductor.Admit(*l, w.newcomer(a), alive)
	if w.answerMatters(d, *l) {
		l.Answers = w.answers(a, *l.Member)
		d = conductor.Admit(*l, w.newcomer(a), alive)
	}
	d = w.S.admission(d, *l, w.newcomer(a))
	refuse, isRefused := d.(conductor.Refuse)
	if !isRefused && l.Directive != nil && l.Directive.Run == w.facts(a).Run {
		w.startWatch(i)
		if !a.Watch.Known || orderOf(*l.Directive) >= orderOf(a.Watch.D) {
			a.Watch.Known, a.Watch.D, a.Watch.Index, a.Watch.Session = true, *l.Directive, l.DirectiveIndex, l.DirectiveSession
		}
	}
	j.D = d
	switch d := d.(type) {
	case conductor.Found, conductor.NewRun, conductor.Claim:
		j.Step = toAct
	case conductor.Standby:
		w.waitFor(i, 20*time.Second)
		if j.Held != d.Holder.Inc {
			j.Held = d.Holder.Inc
			w.tell(i, machine.Event{Kind: machine.Held})
		}
	case conductor.Wait:
		w.waitFor(i, 20*time.Second)
	case conductor.Vanished:
		w.KV.end(j.Session)
		j.Session = ""
		w.waitFor(i, 20*time.Second)
	case conductor.Retry:
		w.waitFor(i, time.Second)
	case conductor.Refuse:
		w.drop(i, a.Gang)
		w.tell(i, machine.Event{Kind: machine.Refused, Code: 75, Cause: fmt.Sprint(refuse.Err)})
	}
}

// holders are the instances in whose names others hold sessions; where there is a directive, without those whose live
// keys and records are of one agent.
func (w *world) holders(own string, directed bool) []string {
	var names []string
	for id, l := range w.KV.Sessions {
		in := w.Agents[l.Owner].In
		inc, live, _ := read[string](w.KV, keyLive(in))
		m, _, ok := read[registry.Member](w.KV, keyMember(in))
		known := directed && ok && live.Session == id && m.Inc == inc
		if l.Deletes && id != own && !known {
			names = append(names, w.Agents[l.Owner].In.String())
		}
	}
	slices.Sort(names)
	return names
}

func (w *world) waitFor(i int, d time.Duration) {
	a := &w.Agents[i]
	a.Joining.Step, a.Joining.Next = toWait, w.Now.Add(d)
	a.Joining.Index, a.Joining.Lock, a.Joining.Idle = a.Watch.Index, a.Watch.Session, d > time.Second
}

func (w *world) answerMatters(d conductor.Admission, l conductor.Snapshot) bool {
	if l.Member == nil || l.App == nil {
		return false
	}
	switch d := d.(type) {
	case conductor.Standby, conductor.Wait:
		return l.LiveSession != "" && w.S.Shell
	case conductor.Claim:
		return d.Proof == conductor.ProofSlot || d.Proof == conductor.ProofOperator || d.Proof == conductor.ProofBoot
	}
	return false
}

// answers: the holder's agent answers at its API.
func (w *world) answers(me *agent, m registry.Member) bool {
	k := m.Pid - 1
	if k < 0 || k >= len(w.Agents) {
		return false
	}
	p := &w.Agents[k]
	return p.Life == alive && p.Inc == m.Inc && (p.Host == me.Host || !w.Cuts[p.Host] && !w.Cuts[me.Host])
}

func (w *world) act(i int, how way) {
	a := &w.Agents[i]
	j := &a.Joining
	switch d := j.D.(type) {
	case conductor.Found:
		id := w.session(i, "conductor", false)
		w.conductFrom(i, id, "T2", how, opCAS(keyApp, 0, d.App), opCAS(keyDirective, 0, d.Directive),
			opLock(keyDirective, id, d.Directive))
	case conductor.NewRun:
		if j.Look.DirectiveSession != "" {
			w.waitFor(i, 200*time.Millisecond)
			return
		}
		id := w.session(i, "conductor", false)
		ops := []op{
			opIndex(keyDirective, j.Look.DirectiveIndex), opCAS(keyApp, d.AppIndex, d.App),
			opLock(keyDirective, id, d.Directive), opAbsent(keyVerdict(w.facts(a).Run)),
		}
		ops = append(ops, dropAsks()...)
		for _, in := range d.Free {
			ops = append(ops, opAbsent(keyLive(in)))
		}
		w.conductFrom(i, id, "T15", how, ops...)
	case conductor.Claim:
		if d.Clear != nil && j.Look.Member != nil {
			w.clean(d.Clear.Pid - 1)
		}
		if d.Evict != "" {
			w.KV.end(d.Evict)
			j.Step = toClaim
			return
		}
		w.claim(i, how)
	}
}

// clean kills what a dead agent left on this host.
func (w *world) clean(k int) {
	if k >= 0 && k < len(w.Agents) && w.Agents[k].Life == dead && !w.S.without(noClean) {
		w.Agents[k].Proc.Live = false
	}
}

// conductFrom sends a directive that this newcomer writes under a session of its own, and conducts with it.
func (w *world) conductFrom(i int, id, name string, how way, ops ...op) {
	a := &w.Agents[i]
	got, _ := w.commit(i, name, how, ops...)
	if e := w.KV.Keys[keyDirective]; got == done || got == unknown && e.Session == id {
		w.startWatch(i)
		w.observe(i, true)
		w.inherit(i, id)
	} else {
		w.KV.end(id)
	}
	a.Joining.Step = toLook
	if got == refused {
		w.waitFor(i, 100*time.Millisecond)
	}
}

// claim is T3.
func (w *world) claim(i int, how way) {
	a := &w.Agents[i]
	j := &a.Joining
	d := j.D.(conductor.Claim)
	if _, ok := w.KV.Sessions[j.Session]; !ok {
		j.Session, j.Born = w.session(i, "member", true), w.moment()
	}
	unheld := opIndex(keyMember(a.In), d.MembersIndex)
	if d.MembersIndex == 0 {
		unheld = opAbsent(keyMember(a.In))
	}
	ops := []op{
		opIndex(keyDirective, d.DirectiveIndex), unheld, opAbsent(keyLive(a.In)),
		opLock(keyLive(a.In), j.Session, d.Record.Inc), opCAS(keyMember(a.In), d.MembersIndex, d.Record), opGet(keyDirective),
	}
	if j.Look.Deserted() {
		ops = append(ops, dropAsks()...)
	}
	switch got, _ := w.commit(i, "T3", how, ops...); got {
	case done:
		w.joined(i, d)
	case unknown:
		j.Step = toVerify
	case refused:
		w.KV.end(j.Session)
		j.Session = ""
		w.waitFor(i, 100*time.Millisecond)
	}
}

// verify finds out whether a claim has succeeded whose answer was lost.
func (w *world) verify(i int) {
	a := &w.Agents[i]
	j := &a.Joining
	d := j.D.(conductor.Claim)
	_, live, _ := read[string](w.KV, keyLive(a.In))
	m, _, ok := read[registry.Member](w.KV, keyMember(a.In))
	if _, there := w.KV.Keys[keyDirective]; there && live.Session == j.Session && ok && m.Inc == a.Inc {
		w.joined(i, d)
		return
	}
	w.KV.end(j.Session)
	j.Session, j.Step = "", toLook
}

// joined makes the membership of a claim that has succeeded.
func (w *world) joined(i int, d conductor.Claim) {
	a := &w.Agents[i]
	j := a.Joining
	a.Member = membership{
		On: true, Session: j.Session, Record: d.Record, Index: w.KV.Keys[keyMember(a.In)].Index, Heard: j.Born,
		App: *j.Look.App,
	}
	a.Joining = joining{}
	w.startWatch(i)
	if d.Unseat != "" {
		w.KV.end(d.Unseat)
	}
	g := a.Gang
	dir, e, _ := read[registry.Directive](w.KV, keyDirective)
	a.Watch.Known, a.Watch.D, a.Watch.Index, a.Watch.Session = true, dir, e.Index, e.Session
	w.finish(i, g, machine.Event{Kind: machine.Joined, Directive: &dir, Joined: &machine.Join{
		Instance: a.In, Attempt: max(0, d.Record.Attempt-1), Budget: d.Record.Budget,
		Spent: d.Record.Phase == registry.PhaseFailed, Service: !w.component(a).Waited,
	}})
}
