package explorer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/machine"
)

// membership is consul.Membership: an index that an agent holds.
type membership struct {
	On        bool
	Over      bool // superseded or left: nothing can be written any more
	Session   string
	Candidate string
	Record    registry.Member
	Index     uint64
	Unsure    bool
	App       registry.AppRecord
	Attach    uint64 // index of the record with which the index has to be attached again; 0: it has not
	Heard     time.Duration
	Retry     time.Time
}

// The keys of the app.
const (
	keyApp       = "app"
	keyDirective = "directive"
)

func path(in registry.Instance) string      { return in.Component + "/" + strconv.Itoa(in.Index) }
func keyMember(in registry.Instance) string { return "members/" + path(in) }
func keyLive(in registry.Instance) string   { return "live/" + path(in) }
func keyReady(gen int, in registry.Instance) string {
	return "ready/" + strconv.Itoa(gen) + "/" + path(in)
}
func keyRoster(id string) string    { return "roster/" + id + "/0" }
func keyVerdict(run string) string  { return "verdict/" + run }
func keyAsk(kind, id string) string { return "ask/" + kind + "/" + id }
func dropAsks() (ops []op) {
	for _, kind := range []string{registry.AskStop, registry.AskFlex, registry.AskSave} {
		ops = append(ops, opDeleteTree("ask/"+kind+"/"))
	}
	return ops
}

func instanceAt(prefix, key string) (registry.Instance, bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	c, i, found := strings.Cut(rest, "/")
	n, err := strconv.Atoi(i)
	return registry.Instance{Component: c, Index: n}, ok && found && err == nil
}

// instances are those that the keys under a prefix name.
func (w *world) instances(prefix string) map[registry.Instance]bool {
	set := map[registry.Instance]bool{}
	for _, k := range w.KV.under(prefix) {
		if in, ok := instanceAt(prefix, k); ok {
			set[in] = true
		}
	}
	return set
}

// answer is what an agent learns of a transaction.
type answer int

// The answers.
const (
	done answer = iota
	refused
	unknown
)

// way is what the network does with a transaction.
type way int

// The ways.
const (
	through way = iota
	answerLost
	requestLost
	requestLate
)

// commit sends a transaction. The rule that is explored without is taken out of it.
func (w *world) commit(i int, name string, how way, ops ...op) (answer, string) {
	if w.S.shapes != nil {
		w.S.shapes[shape(ops)] = name
	}
	switch how {
	case requestLost:
		return unknown, ""
	case requestLate:
		w.Flight = append(w.Flight, request{i, name, ops})
		return unknown, ""
	}
	next, why := w.KV.commit(w.S.And.cut(name, w.S.Without.cut(name, ops)))
	if w.S.Without.Txn == name {
		w.Meets++
		if w.S.Without.matters(w.KV, ops, why) {
			w.Apart++
		}
	}
	if why != "" {
		if how == answerLost {
			return unknown, ""
		}
		return refused, why
	}
	before := w.KV
	w.KV = next
	w.written(i, name, before)
	if how == answerLost {
		return unknown, ""
	}
	return done, ""
}

// observe takes in a reading of the directive, as directiveWatch does. consistent: the reading counts even if it goes
// back.
func (w *world) observe(i int, consistent bool) {
	a := &w.Agents[i]
	d, e, ok := read[registry.Directive](w.KV, keyDirective)
	back := ""
	if a.Watch.Known {
		switch o := orderOf(d) - orderOf(a.Watch.D); {
		case !ok:
			back = "the directive has vanished"
		case o < 0 || d.Gen == a.Watch.D.Gen && d.Run != a.Watch.D.Run:
			back = "the directive went back"
		}
	}
	if back != "" {
		if consistent && a.Watch.Lost == "" {
			a.Watch.Lost = back
			w.tell(i, machine.Event{Kind: machine.DataLost, Cause: back})
		}
		return
	}
	if !ok {
		return
	}
	changed := !a.Watch.Known || !reflect.DeepEqual(d, a.Watch.D)
	found := a.Watch.Lost != ""
	a.Watch.Known, a.Watch.D, a.Watch.Index, a.Watch.Session, a.Watch.Lost = true, d, e.Index, e.Session, ""
	if found {
		w.tell(i, machine.Event{Kind: machine.Back})
	}
	if changed && w.Agents[i].Member.On {
		w.tell(i, machine.Event{Kind: machine.Directed, Directive: &d})
	}
}

func orderOf(d registry.Directive) int {
	return d.Gen*4 + slices.Index([]registry.Act{registry.ActWait, registry.ActRun, registry.ActStop}, d.Act)
}

// start begins the watch of the directive.
func (w *world) startWatch(i int) {
	a := &w.Agents[i]
	if !a.Watch.On {
		a.Watch.On, a.Watch.Came = true, w.Now
	}
}

// stale tells whether the watch of the directive has something to say.
func (w *world) stale(a *agent) bool {
	if !a.Watch.On {
		return false
	}
	d, e, ok := read[registry.Directive](w.KV, keyDirective)
	if !ok {
		return a.Watch.Known && a.Watch.Lost == ""
	}
	if orderOf(d) < orderOf(a.Watch.D) || d.Gen == a.Watch.D.Gen && d.Run != a.Watch.D.Run {
		return a.Watch.Lost == ""
	}
	return a.Watch.Lost != "" || e.Index != a.Watch.Index || e.Session != a.Watch.Session
}

// reconcile reads the own record and the live key; it tells whether the record is one of those sent.
func (w *world) reconcile(i int, sent []registry.Member, how way) (written bool) {
	w.observe(i, true)
	a := &w.Agents[i]
	app, _, hasApp := read[registry.AppRecord](w.KV, keyApp)
	if hasApp && app.Run == a.Member.App.Run && !app.Created.Equal(a.Member.App.Created) && !w.S.without(noFounding) {
		w.supersede(i, app.By)
		return false
	}
	m, e, ok := read[registry.Member](w.KV, keyMember(a.In))
	_, dir, directed := read[registry.Directive](w.KV, keyDirective)
	lost := a.Watch.Lost != ""
	if !ok && (lost || !directed || !hasApp) {
		w.keepPlace(i)
		return false
	}
	if ok && (m.Inc != a.Inc || m.Phase == registry.PhaseLost) {
		w.supersede(i, m.Inc)
		return false
	}
	if ok && e.Index >= a.Member.Index {
		a.Member.Record, a.Member.Index, a.Member.Unsure = m, e.Index, false
		written = slices.ContainsFunc(sent, func(o registry.Member) bool { return reflect.DeepEqual(o, m) })
	}
	index := e.Index
	switch {
	case lost:
		a.Member.Unsure, a.Member.Retry = true, w.Now.Add(time.Second)
	case !ok || e.Index < a.Member.Index:
		if !w.rewrite(i, e.Index, dir.Index, how) {
			return false
		}
		index = a.Member.Index
	}
	w.reattach(i, index)
	return written
}

// reattach finds out whether the index has to be attached again.
func (w *world) reattach(i int, index uint64) {
	a := &w.Agents[i]
	_, live, held := read[string](w.KV, keyLive(a.In))
	switch {
	case a.Member.Record.Phase == registry.PhaseLeft, held && live.Session == a.Member.Session:
	case held && live.Session == a.Member.Candidate:
		w.adoptSession(i)
	case held && live.Session != "":
		a.Member.Unsure, a.Member.Retry = true, w.Now.Add(time.Second)
	default:
		a.Member.Attach = index
	}
}

func (w *world) adoptSession(i int) {
	a := &w.Agents[i]
	if old := a.Member.Session; old != a.Member.Candidate {
		w.KV.end(old)
	}
	a.Member.Session, a.Member.Candidate = a.Member.Candidate, ""
	if a.Watch.Lost == "" {
		a.Member.Heard = w.moment()
	}
}

// keepPlace keeps a session under the instance's name while all else is lost.
func (w *world) keepPlace(i int) {
	a := &w.Agents[i]
	a.Member.Retry = w.Now.Add(time.Second)
	if _, ok := w.KV.Sessions[a.Member.Session]; !ok {
		a.Member.Session = w.session(i, "member", true)
	}
}

// rewrite writes the own record again in place of an older one.
func (w *world) rewrite(i int, old, directive uint64, how way) bool {
	a := &w.Agents[i]
	ops := []op{opIndex(keyDirective, directive), opCAS(keyMember(a.In), old, a.Member.Record)}
	ready := w.lockReady(a, a.Member.Session)
	_, live, ok := read[string](w.KV, keyLive(a.In))
	switch r := a.Member.Record; {
	case len(ready) == 0 && r.Gen > 0:
		ops = append(ops, opDelete(keyReady(r.Gen, a.In)))
	case ok && live.Session == a.Member.Session:
		ops = append(ops, ready...)
	}
	if got, _ := w.commit(i, "rewrite", how, ops...); got != done {
		a.Member.Retry = w.Now.Add(time.Second)
		return false
	}
	a.Member.Index, a.Member.Unsure = w.KV.Keys[keyMember(a.In)].Index, false
	return true
}

// mayAdopt tells whether an agent can write the app's data again: it has seen more of it than the registry has; that of
// a run that is over not over another run.
func (w *world) mayAdopt(a *agent) bool {
	app, _, founded := read[registry.AppRecord](w.KV, keyApp)
	own := a.Member.App
	_, over := w.KV.Keys[keyVerdict(own.Run)]
	return w.connected(a) && a.Member.On && !a.Member.Over && a.Watch.Known && a.Watch.Lost != "" && !over &&
		(!founded || app.Created.Equal(own.Created) || app.Run != own.Run && a.Watch.D.Verdict == nil)
}

// adopt is T19, after a reading that shows that the data is lost.
func (w *world) adopt(i int, how way) {
	w.observe(i, true)
	a := &w.Agents[i]
	if a.Watch.Lost == "" {
		return
	}
	app, d := a.Member.App, a.Watch.D
	app.Counts = d.Counts
	d.By, d.Seq, d.Adopted = a.Inc, d.Seq+1, true
	var ops []op
	if d.Roster.ID != "" {
		key := keyRoster(d.Roster.ID)
		if _, there := w.KV.Keys[key]; !there && (a.Row == nil || a.Row.Gen != d.Gen || d.Act == registry.ActWait) {
			if d.Act != registry.ActWait {
				return // this agent has not read the roster
			}
			d.Roster = registry.RosterRef{}
		} else {
			if !there {
				w.commit(i, "adopted roster", through, opCAS(key, 0, *a.Row))
			}
			ops = append(ops, opIndex(key, w.KV.Keys[key].Index))
		}
	}
	ops = append(ops, opCAS(keyApp, w.KV.Keys[keyApp].Index, app),
		opCAS(keyDirective, w.KV.Keys[keyDirective].Index, d))
	if d.Verdict != nil {
		ops = append(ops, opCAS(keyVerdict(d.Run), 0, *d.Verdict))
	} else {
		ops = append(ops, opAbsent(keyVerdict(d.Run)))
	}
	w.commit(i, "T19", how, ops...)
	w.observe(i, true)
}

// lockReady acknowledges again what the record acknowledges.
func (w *world) lockReady(a *agent, session string) []op {
	r := a.Member.Record
	if a.Watch.Lost != "" || r.Phase != registry.PhaseReady || r.Gen == 0 {
		return nil
	}
	return []op{opLock(keyReady(r.Gen, a.In), session, "")}
}

// supersede ends the membership.
func (w *world) supersede(i int, by string) {
	if w.S.without(noSuperior) {
		w.Agents[i].Member.Retry = w.Now.Add(time.Second)
		return
	}
	w.Agents[i].Member.Over = true
	w.tell(i, machine.Event{Kind: machine.Taken, Cause: "another agent holds the index: " + by})
}

// holds is the check of each renewal: the index is this agent's.
func (w *world) holds(a *agent) bool {
	_, there := w.KV.Sessions[a.Member.Session]
	_, live, _ := read[string](w.KV, keyLive(a.In))
	_, e, ok := read[registry.Member](w.KV, keyMember(a.In))
	if w.S.without(noContact) {
		return there
	}
	return there && live.Session == a.Member.Session && ok && e.Index == a.Member.Index && a.Watch.Lost == ""
}

// attach is T9.
func (w *world) attach(i int, how way) {
	a := &w.Agents[i]
	index := a.Member.Attach
	a.Member.Attach = 0
	if _, ok := w.KV.Sessions[a.Member.Candidate]; !ok {
		a.Member.Candidate = w.session(i, "member", true)
	}
	ops := []op{opIndex(keyMember(a.In), index), opLock(keyLive(a.In), a.Member.Candidate, a.Inc)}
	ops = append(ops, w.lockReady(a, a.Member.Candidate)...)
	switch got, _ := w.commit(i, "T9", how, ops...); got {
	case done:
		w.adoptSession(i)
	case refused:
		w.KV.end(a.Member.Candidate)
		a.Member.Candidate, a.Member.Unsure = "", true
	case unknown:
		a.Member.Unsure = true
	}
}

// writing is a change of the own record with what goes into the same transaction.
type writing struct {
	name   string
	change func(*registry.Member) (overtaken bool)
	around func(before registry.Member, session string) (ops []op, overtaken bool)
}

// outcome of one attempt of a writing.
type outcome int

// The outcomes.
const (
	again outcome = iota
	wrote
	overtakenBy
	hopeless
)

// attempt is one request of a writing.
func (w *world) attempt(i int, wr writing, how way) outcome {
	a := &w.Agents[i]
	g := a.Gang
	switch {
	case a.Member.Over || !a.Member.On:
		return hopeless
	case a.Member.Attach != 0:
		w.attach(i, how)
		return again
	case a.Member.Unsure:
		if w.reconcile(i, g.Sent, how) {
			return wrote
		}
		return again
	}
	after := clone(a.Member.Record)
	if wr.change(&after) {
		return overtakenBy
	}
	ops := []op{opSession(keyLive(a.In), a.Member.Session), opCAS(keyMember(a.In), a.Member.Index, after)}
	if wr.around != nil {
		more, over := wr.around(a.Member.Record, a.Member.Session)
		if over {
			return overtakenBy
		}
		ops = append(ops, more...)
	}
	g.Sent = append(slices.Clip(g.Sent), after)
	a.Member.Unsure = true
	if got, _ := w.commit(i, wr.name, how, ops...); got != done {
		return again
	}
	a.Member.Record, a.Member.Index, a.Member.Unsure = after, w.KV.Keys[keyMember(a.In)].Index, false
	return wrote
}

func clone(m registry.Member) registry.Member {
	m.Ports, m.Exports = maps.Clone(m.Ports), maps.Clone(m.Exports)
	return m
}

func unready(a *agent) func(registry.Member, string) ([]op, bool) {
	in := a.In
	return func(before registry.Member, _ string) ([]op, bool) {
		if before.Gen == 0 {
			return nil, false
		}
		return []op{opDelete(keyReady(before.Gen, in))}, false
	}
}

// port is one that no living agent of the host has bound, the same as its predecessor's if that is free.
func (w *world) port(i int) int {
	n := 1000 + w.Agents[i].In.Index
	for k := 0; k < len(w.Agents); k++ {
		if o := w.Agents[k]; k != i && o.Life == alive && o.Host == w.Agents[i].Host && o.Port == n {
			n, k = n+100, -1
		}
	}
	return n
}

// update writes what a staged agent publishes.
func update(a *agent, s machine.State, r *registry.Member) {
	r.Addr, r.Address = hostName(a.Host), fmt.Sprintf("%s:%d", hostName(a.Host), a.Port)
	r.Ports, r.Peer = map[string]int{"port": a.Port}, fmt.Sprintf("%s:%d", hostName(a.Host), 1000+a.Port)
	r.Guard = &registry.ProcessRef{Pid: 1000 + a.Machine.Pid, Start: 1}
	r.Attempt, r.Budget = s.Attempt+1, s.Budget
}

func (w *world) acknowledging(a *agent) writing {
	gen, s, in, watch, without := a.Gang.E.Gen, a.Gang.S, a.In, a.Watch, w.S.without(noAgain)
	return writing{"T4", func(m *registry.Member) bool {
		if watch.D.Gen != gen || watch.D.Act == registry.ActStop {
			return true
		}
		update(a, s, m)
		m.Gen, m.Phase = gen, registry.PhaseReady
		return false
	}, func(before registry.Member, session string) ([]op, bool) {
		ops := []op{opLock(keyReady(gen, in), session, "")}
		if before.Gen > 0 && before.Gen != gen {
			ops = append(ops, opDelete(keyReady(before.Gen, in)))
		}
		if before.Gen != gen {
			return ops, false
		}
		if watch.D.Gen != gen || watch.D.Act != registry.ActWait || without {
			return nil, true
		}
		return append(ops, opIndex(keyDirective, watch.Index)), false
	}}
}

func reporting(a *agent, r registry.Report) writing {
	return writing{"T10", func(m *registry.Member) bool {
		exit := r.Exit
		m.Phase, m.Exit, m.Attempt, m.Budget = r.Phase, &exit, r.Attempt, r.Budget
		return false
	}, unready(a)}
}

func publishing(change func(*registry.Member)) writing {
	return writing{"T10b", func(m *registry.Member) bool { change(m); return false }, nil}
}

func departing(a *agent) writing {
	in := a.In
	return writing{"T14", func(m *registry.Member) bool {
		if !(m.Phase == registry.PhaseEnded || m.Phase == registry.PhaseFailed && m.Exit != nil && m.Exit.Final) {
			m.Phase = registry.PhaseLeft
		}
		return false
	}, func(before registry.Member, s string) ([]op, bool) {
		ops, _ := unready(a)(before, s)
		return append(ops, opDelete(keyLive(in))), false
	}}
}

// leavePatience bounds the last writes of a leaving agent, as member.LeavePatience does.
const leavePatience = 5 * time.Second

// gangReady tells whether the effect under way can make a step.
func (w *world) gangReady(i int) bool {
	a := &w.Agents[i]
	g := a.Gang
	if g == nil {
		return false
	}
	if g.E.Kind == machine.DoLeave {
		if !a.Member.On || w.Now.Sub(g.Since) >= leavePatience {
			return true
		}
		return w.connected(a) && !w.Now.Before(a.Member.Retry)
	}
	if !w.connected(a) {
		return false
	}
	switch g.E.Kind {
	case machine.DoJoin:
		return w.joinReady(i)
	case machine.DoReadRoster:
		_, _, ok := read[registry.Roster](w.KV, keyRoster(g.E.Roster.ID))
		return ok
	}
	return !w.Now.Before(a.Member.Retry)
}

// gang does one request of the effect under way.
func (w *world) gang(i int, how way) {
	a := &w.Agents[i]
	g := a.Gang
	e, s := g.E, g.S
	switch e.Kind {
	case machine.DoJoin:
		w.join(i, how)
	case machine.DoAcknowledge:
		switch w.attempt(i, w.acknowledging(a), how) {
		case wrote:
			w.finish(i, g, machine.Event{Kind: machine.Acked, Gen: e.Gen})
		case overtakenBy:
			w.finish(i, g, machine.Event{Kind: machine.Overtaken, Gen: e.Gen})
		case hopeless:
			w.drop(i, g)
		}
	case machine.DoPublish:
		w.write(i, g, publishing(func(m *registry.Member) { update(a, s, m) }), how, machine.Event{Kind: machine.Published})
	case machine.DoReport:
		w.write(i, g, reporting(a, *e.Report), how, machine.Event{Kind: machine.Reported, Gen: e.Gen})
	case machine.DoRestarted:
		w.write(i, g, publishing(func(m *registry.Member) { m.Attempt, m.Budget = e.Attempt, e.Budget }), how, machine.Event{})
	case machine.DoReportUp:
		w.write(i, g, publishing(func(m *registry.Member) {
			if m.Gen <= e.Gen {
				m.Attempt, m.Budget, m.Up = e.Attempt, e.Budget, e.Gen
			}
		}), how, machine.Event{})
	case machine.DoReadRoster:
		w.readRoster(i, g)
	case machine.DoLeave:
		w.leave(i, g, how)
	default:
		panic("unexpected effect " + string(e.Kind))
	}
}

// finish ends an effect with an event, unless a newer effect has taken its place.
func (w *world) finish(i int, g *gangEffect, e machine.Event) {
	w.drop(i, g)
	if e.Kind != "" {
		w.tell(i, e)
	}
}

func (w *world) drop(i int, g *gangEffect) {
	if a := &w.Agents[i]; a.Gang == g {
		a.Gang = nil
	}
}

func (w *world) write(i int, g *gangEffect, wr writing, how way, e machine.Event) {
	switch w.attempt(i, wr, how) {
	case wrote:
		w.finish(i, g, e)
	case hopeless, overtakenBy:
		w.drop(i, g)
	case again:
	}
}

func (w *world) readRoster(i int, g *gangEffect) {
	a := &w.Agents[i]
	roster, _, _ := read[registry.Roster](w.KV, keyRoster(g.E.Roster.ID))
	a.Row = &roster
	record := clone(a.Member.Record)
	update(a, g.S, &record)
	row, ok := roster.Row(a.In)
	e := machine.Event{Kind: machine.Sealed, Gen: roster.Gen}
	if !ok || !record.SameRow(row, w.component(a).Scope) && !w.S.without(noMismatch) {
		e.Kind = machine.Mismatch
	}
	w.finish(i, g, e)
}

// leave reports, steps down, gives the index back and ends the session, one request at a time.
func (w *world) leave(i int, g *gangEffect, how way) {
	a := &w.Agents[i]
	left := machine.Event{Kind: machine.Left}
	if !a.Member.On || w.Now.Sub(g.Since) >= leavePatience || a.Member.Over {
		a.Member.Over, a.Tenure = true, nil // it could not
		w.finish(i, g, left)
		return
	}
	r := g.E.Report
	if w.S.without(noCarry) {
		r = nil
	}
	switch g.Step {
	case 0:
		var wr writing
		switch {
		case r == nil:
			g.Step = 1
			return
		case r.Phase == registry.PhaseFailed || r.Phase == registry.PhaseEnded:
			wr = reporting(a, *r)
		default:
			wr = publishing(func(m *registry.Member) { x := r.Exit; m.Exit, m.Attempt = &x, r.Attempt })
		}
		if w.attempt(i, wr, how) == wrote {
			g.Step, g.Sent = 1, nil
		}
	case 1:
		if a.Tenure != nil {
			w.stepDown(i, how)
		}
		g.Step = 2
	case 2:
		if w.attempt(i, departing(a), how) == wrote {
			w.KV.end(a.Member.Session)
			w.finish(i, g, left)
		}
	}
}

// silences are the answers of the peers whom an agent asks.
func (w *world) silences(i int) []conductor.Silence {
	a := &w.Agents[i]
	var all []conductor.Silence
	for k := range w.Agents {
		p := &w.Agents[k]
		if k == i || p.Life != alive || !p.Member.On || w.Cuts[p.Host] || w.Cuts[a.Host] {
			continue
		}
		fenced := p.M.CutOff || p.M.Phase == machine.Fenced || p.M.Phase == machine.Stopping && p.M.Reason == machine.ForFence ||
			w.standing(k) == conductor.CutOff
		all = append(all, conductor.Silence{
			Instance: p.In, Inc: p.Inc, Gen: p.M.Gen, For: w.moment() - p.Member.Heard, Fenced: fenced,
		})
	}
	return all
}

func (w *world) standing(i int) conductor.Standing {
	a := &w.Agents[i]
	a.Fence.Heard = a.Member.Heard
	return a.Fence.Standing(times(), w.moment())
}

// guardHost is the partition guard of an agent, looked at.
func (w *world) guardHost(i int) {
	a := &w.Agents[i]
	if a.Life != alive || !a.Member.On {
		return
	}
	if s := w.standing(i); a.Fence.Due(s, w.moment()) && a.Row != nil {
		panel := conductor.NewPanel(w.facts(a), *a.Row, a.In)
		if _, _, shown := panel.Evidence(times(), w.silences(i)); shown {
			a.Fence.Evidence = w.moment()
		}
		a.Fence.Asked = w.moment()
	}
	switch s := w.standing(i); {
	case s == conductor.CutOff && !a.M.CutOff:
		w.tell(i, machine.Event{Kind: machine.CutOff})
	case s == conductor.InTouch && w.moment()-a.Member.Heard < 2*times().Renew && (a.M.CutOff || a.M.Phase == machine.Fenced):
		w.tell(i, machine.Event{Kind: machine.Contact})
	}
	if a = &w.Agents[i]; a.Proc.Live && w.standing(i) != conductor.CutOff {
		if end := a.Fence.End(times()); end > w.moment() {
			a.Proc.End = end
		}
	}
}
