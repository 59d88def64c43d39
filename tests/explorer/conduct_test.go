package explorer

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/machine"
)

// tenure is consul.conducting: one conductor's state with its timers, its view, and the effects still to be done.
type tenure struct {
	Session string
	State   conductor.State
	View    conductor.View
	Effects []conductor.Effect
	More    bool
	Reread  bool // a request was refused or its result is unknown
	Wake    time.Time
	Refused string
	Count   int
	Rest    time.Time
	Silent  time.Time
}

// inherit begins a tenure.
func (w *world) inherit(i int, session string) {
	a := &w.Agents[i]
	f := w.facts(a)
	a.Tenure = &tenure{Session: session, State: conductor.New(f, a.Inc), More: true}
	a.Tenure.State.Came = a.Watch.Came
	w.resetView(i)
	w.tell(i, machine.Event{Kind: machine.Conducting, On: true})
}

// resetView starts with an empty view, unless the lock is lost.
func (w *world) resetView(i int) {
	a := &w.Agents[i]
	t := a.Tenure
	if a.Watch.Lost != "" || a.Watch.Session != t.Session {
		w.resign(i)
		return
	}
	t.View = conductor.View{
		Directive: a.Watch.D, DirectiveIndex: a.Watch.Index, Asks: t.View.Asks, Trouble: t.View.Trouble,
	}
	t.Effects, t.More = nil, true
}

// resign ends a tenure whose lock is lost. Its session is renewed no more.
func (w *world) resign(i int) {
	a := &w.Agents[i]
	if l, ok := w.KV.Sessions[a.Tenure.Session]; ok {
		l.Left = true
		w.KV.Sessions[a.Tenure.Session] = l
	}
	a.Tenure = nil
	w.tell(i, machine.Event{Kind: machine.Conducting})
}

// vacant tells whether an agent may elect itself.
func (w *world) vacant(a *agent) bool {
	return a.Life == alive && w.connected(a) && a.Tenure == nil && a.Watch.On && a.Watch.Known && a.Watch.Lost == "" &&
		a.Watch.Session == "" && a.Watch.D.Act != registry.ActStop && a.Watch.D.Run == w.facts(a).Run && !a.Member.Over && a.M.Phase != machine.Leaving
}

// elect is T6.
func (w *world) elect(i int, how way) {
	a := &w.Agents[i]
	id := w.session(i, "conductor", false)
	d := a.Watch.D
	d.By, d.Seq = a.Inc, d.Seq+1
	ops := []op{opIndex(keyDirective, a.Watch.Index), opLock(keyDirective, id, d)}
	if len(w.KV.under("live/")) == 0 {
		ops = append(ops, dropAsks()...)
	}
	w.commit(i, "T6", how, ops...)
	w.observe(i, true)
	if a.Watch.Session == id {
		w.inherit(i, id)
		return
	}
	w.KV.end(id)
}

// stepDown is T16.
func (w *world) stepDown(i int, how way) {
	a := &w.Agents[i]
	t := a.Tenure
	if a.Watch.Session == t.Session {
		got, _ := w.commit(i, "T16", how, opIndex(keyDirective, a.Watch.Index), opUnlock(keyDirective, t.Session, a.Watch.D))
		w.observe(i, true)
		if got == refused && a.Watch.Session == t.Session {
			return // the directive was written since it was last seen: again
		}
	}
	id := t.Session
	w.resign(i)
	w.KV.end(id)
}

// conductReady tells whether the conductor has anything to do at this moment.
func (w *world) conductReady(i int) bool {
	a := &w.Agents[i]
	t := a.Tenure
	if t == nil || !w.connected(a) || w.Now.Before(t.Rest) {
		return false
	}
	return t.Reread || len(t.Effects) > 0 || t.More || !t.Silent.IsZero() || a.Member.Over || w.lockLost(a) ||
		a.Watch.Index != t.View.DirectiveIndex || !t.Wake.IsZero() && !w.Now.Before(t.Wake)
}

func (w *world) lockLost(a *agent) bool {
	return a.Watch.Lost != "" || a.Watch.Session != a.Tenure.Session
}

// hears is a blocking read of the ready keys or of the asks that has an answer.
func (w *world) hears(i int, asks bool) bool {
	a := &w.Agents[i]
	t := a.Tenure
	if t == nil || !w.connected(a) || len(t.Effects) > 0 || t.More || t.Reread {
		return false
	}
	if asks {
		return !reflect.DeepEqual(w.asks(), t.View.Asks)
	}
	return t.View.Directive.Act != registry.ActStop && t.View.ReadyGen == t.View.Directive.Gen &&
		!maps.Equal(w.ready(t.View.Directive.Gen), t.View.Ready)
}

func (w *world) hear(i int, asks bool) {
	t := w.Agents[i].Tenure
	t.More = true
	if asks {
		t.View.Asks = w.asks()
		return
	}
	w.answered(t)
	gen := t.View.Directive.Gen
	t.View.Ready, t.View.ReadyGen, t.View.ReadyAt = w.ready(gen), gen, w.Now
}

func (w *world) asks() []registry.Ask {
	var all []registry.Ask
	for _, k := range w.KV.under("ask/") {
		v, _, _ := read[registry.Ask](w.KV, k)
		all = append(all, v)
	}
	return all
}

func (w *world) ready(gen int) map[registry.Instance]bool {
	return w.instances(fmt.Sprintf("ready/%d/", gen))
}

func (w *world) answered(t *tenure) {
	if !t.Silent.IsZero() {
		t.View.Trouble += w.Now.Sub(t.Silent)
		t.Silent = time.Time{}
	}
}

// conduct does the conductor's next request, or asks State.Step what to do.
func (w *world) conduct(i int, how way) {
	a := &w.Agents[i]
	t := a.Tenure
	switch {
	case a.Member.Over:
		w.stepDown(i, how)
	case t.Reread:
		t.Reread = false
		w.observe(i, true)
		w.answered(t)
		if w.Agents[i].Tenure != nil {
			w.resetView(i)
		}
	case w.lockLost(a):
		w.resign(i)
	case a.Watch.Index != t.View.DirectiveIndex:
		w.resetView(i)
	case len(t.Effects) > 0:
		w.carryOut(i, how)
	default:
		w.answered(t)
		w.step(i)
	}
}

func (w *world) step(i int) {
	t := w.Agents[i].Tenure
	t.More, t.Wake = false, time.Time{}
	var effects []conductor.Effect
	if w.S.without(noProlonged) {
		t.View.Trouble = 0
	}
	if w.S.without(noTimers) {
		t.State = conductor.New(t.State.Facts, t.State.Inc)
	}
	view := t.View
	view.Asks = w.S.asked(view.Asks)
	if w.S.without(noAnew) {
		view.Directive.Retries.Gen = 0
	}
	t.State, effects = t.State.Step(w.Now, view)
	t.View.Trouble = 0
	for _, e := range effects {
		if x, ok := e.(conductor.Wake); ok {
			if t.Wake.IsZero() || x.At.Before(t.Wake) {
				t.Wake = x.At
			}
			continue
		}
		t.Effects = append(t.Effects, e)
	}
}

// carryOut does the next effect.
func (w *world) carryOut(i int, how way) {
	a := &w.Agents[i]
	t := a.Tenure
	e := t.Effects[0]
	t.Effects = t.Effects[1:]
	before := t.View.DirectiveIndex
	got, why, over := w.effect(i, e, how)
	if a = &w.Agents[i]; a.Life != alive || a.Tenure != t {
		return // the write was news to the agent itself, and has ended it
	}
	switch {
	case over:
		w.stepDown(i, how)
	case got == done:
		t.More = t.More || len(t.Effects) == 0
		if !reads(e) {
			t.Refused, t.Count = "", 0
		}
		if t.View.DirectiveIndex != before {
			t.Effects, t.More = nil, true
		}
	default:
		t.Effects, t.Reread = nil, true
		if got == refused {
			t.rest(why, w.Now)
		}
	}
}

// rest: the same refusal twice is no race that another has won.
func (t *tenure) rest(why string, now time.Time) {
	if why != t.Refused {
		t.Refused, t.Count = why, 0
	}
	if t.Count++; t.Count >= 2 {
		t.Rest = now.Add(min(time.Second<<min(t.Count-2, 5), 30*time.Second))
	}
}

func reads(e conductor.Effect) bool {
	switch e.(type) {
	case conductor.ReadReady, conductor.ReadRecords, conductor.ReadRoster:
		return true
	}
	return false
}

func (w *world) effect(i int, e conductor.Effect, how way) (got answer, why string, over bool) {
	t := w.Agents[i].Tenure
	switch e := e.(type) {
	case conductor.ReadReady:
		gen := t.View.Directive.Gen
		t.View.Ready, t.View.ReadyGen, t.View.ReadyAt = w.ready(gen), gen, w.Now
	case conductor.ReadRecords:
		w.readRecords(t, e)
	case conductor.ReadRoster:
		r, _, ok := read[registry.Roster](w.KV, keyRoster(e.Ref.ID))
		if !ok {
			return unknown, "", false
		}
		t.View.Roster = &r
	case conductor.Seal:
		got, why = w.direct(i, "T5", how, e.Directive, opSet(keyRoster(e.Packed.Ref.ID), e.Roster))
		if got == done && w.Agents[i].Tenure == t {
			t.View.Roster = &e.Roster
		}
	case conductor.Rebuild:
		got, why = w.direct(i, "T11", how, e.Directive)
	case conductor.Release:
		got, why = w.direct(i, "release", how, e.Directive)
	case conductor.Retarget:
		got, why = w.direct(i, "retarget", how, e.Directive)
	case conductor.Begin:
		got, why = w.direct(i, "begin", how, e.Directive)
	case conductor.End:
		got, why = w.end(i, e, how)
	case conductor.Lost:
		all := []conductor.Lost{e}
		for len(t.Effects) > 0 {
			next, ok := t.Effects[0].(conductor.Lost)
			if !ok {
				break
			}
			all, t.Effects = append(all, next), t.Effects[1:]
		}
		got, why = w.lost(i, all, how)
	case conductor.DropAsk:
		got, why = w.commit(i, "drop ask", how, opSession(keyDirective, t.Session), opDelete(keyAsk(e.Ask.Kind, e.Ask.ID)))
		if got == done {
			t.View.Asks = without(t.View.Asks, e.Ask)
		}
	case conductor.CleanUp:
		ops := []op{opSession(keyDirective, t.Session), opDeleteTree("ready/"), opDeleteTree("ask/")}
		for _, k := range w.KV.under("roster/") {
			if !strings.HasPrefix(k, "roster/"+e.KeepRoster+"/") {
				ops = append(ops, opDelete(k))
			}
		}
		if got, why = w.commit(i, "clean up", how, ops...); got == done {
			t.View.Asks = nil
		}
	case conductor.StepDown:
		return done, "", true
	default:
		panic(fmt.Sprintf("unexpected effect %T", e))
	}
	return got, why, false
}

func (w *world) readRecords(t *tenure, e conductor.ReadRecords) {
	record := func(in registry.Instance) conductor.Record {
		m, x, ok := read[registry.Member](w.KV, keyMember(in))
		if ok && w.S.without(noOrder) {
			m.Up = t.View.Directive.Gen
		}
		if ok && w.S.without(noAnyPhase) && m.Phase == registry.PhaseFailed && t.View.Roster != nil {
			if row, has := t.View.Roster.Row(in); has && row.Inc != m.Inc {
				m.Inc, m.Phase = row.Inc, registry.PhaseReady
			}
		}
		_, live := w.KV.Keys[keyLive(in)]
		return conductor.Record{Member: m, Index: x.Index, Live: live, At: w.Now}
	}
	switch {
	case e.All:
		t.View.Records, t.View.AllAt = map[registry.Instance]conductor.Record{}, w.Now
		for in := range w.instances("members/") {
			t.View.Records[in] = record(in)
		}
	case len(e.Of) > 0:
		all := maps.Clone(t.View.Records)
		if all == nil {
			all = map[registry.Instance]conductor.Record{}
		}
		for _, in := range e.Of {
			all[in] = record(in)
		}
		t.View.Records = all
	}
	if e.Checkpoints {
		t.View.Checkpoints, t.View.CheckpointsAt = map[registry.Instance]registry.Checkpoint{}, w.Now
	}
}

// direct writes a directive.
func (w *world) direct(i int, name string, how way, d registry.Directive, with ...op) (answer, string) {
	t := w.Agents[i].Tenure
	ops := []op{opSession(keyDirective, t.Session), opIndex(keyDirective, t.View.DirectiveIndex)}
	if !maps.Equal(d.Counts, t.View.Directive.Counts) {
		app, e, ok := read[registry.AppRecord](w.KV, keyApp)
		if !ok {
			return unknown, ""
		}
		app.Counts = d.Counts
		ops = append(ops, opCAS(keyApp, e.Index, app))
	}
	ops = append(append(ops, with...), opLock(keyDirective, t.Session, d))
	got, why := w.commit(i, name, how, ops...)
	if got != done {
		return got, why
	}
	if d.Roster.ID != t.View.Directive.Roster.ID {
		t.View.Roster = nil
	}
	t.View.Directive, t.View.DirectiveIndex = d, w.KV.Keys[keyDirective].Index
	w.observe(i, false)
	return done, ""
}

// end is T12.
func (w *world) end(i int, e conductor.End, how way) (answer, string) {
	got, why := w.direct(i, "T12", how, e.Directive, opCAS(keyVerdict(e.Verdict.Run), 0, e.Verdict))
	if got != refused {
		return got, why
	}
	v, x, ok := read[registry.Verdict](w.KV, keyVerdict(e.Verdict.Run))
	if !ok {
		return got, why
	}
	d := e.Directive
	d.Verdict, d.Why, d.First = &v, v.Cause, v.First
	return w.direct(i, "adopt", how, d, opIndex(keyVerdict(v.Run), x.Index))
}

// lost is T7.
func (w *world) lost(i int, all []conductor.Lost, how way) (answer, string) {
	t := w.Agents[i].Tenure
	ops := []op{opSession(keyDirective, t.Session)}
	for _, e := range all {
		ops = append(ops, opAbsent(keyLive(e.Instance)), opCAS(keyMember(e.Instance), e.Index, e.Member))
	}
	got, why := w.commit(i, "T7", how, ops...)
	if got == done {
		records := maps.Clone(t.View.Records)
		for _, e := range all {
			x := w.KV.Keys[keyMember(e.Instance)]
			records[e.Instance] = conductor.Record{Member: e.Member, Index: x.Index, At: w.Now}
		}
		t.View.Records = records
	}
	return got, why
}

func without(asks []registry.Ask, a registry.Ask) []registry.Ask {
	var rest []registry.Ask
	for _, o := range asks {
		if o.Kind != a.Kind || o.ID != a.ID {
			rest = append(rest, o)
		}
	}
	return rest
}
