package explorer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/machine"
)

// sort is what a choice is: work that is done without delay, what the environment does at some time, a fault, or the
// clock.
type sort int

// The sorts.
const (
	work sort = iota
	event
	fault
	clock
)

// choice is one thing that can happen next.
type choice struct {
	Name   string
	Sort   sort
	Thread string // whose turn it is
	Do     func(*world)
}

// next is the world after a choice.
func (w *world) next(c choice) *world {
	n := w.clone()
	c.Do(n)
	n.settle()
	return n
}

// choices are what can happen next, in a fixed order. In a free world that is everything. Else work has its turn: the
// first thread that can do something does it, and every deviation costs a delay, of which a setting has some. That is
// complete up to that number of deviations, and small enough to be explored.
func (w *world) choices() []choice {
	if w.Truth.Lost && w.Now.Sub(w.Truth.Since) > 2*times().LostMass {
		return nil // it may go on like that for ever
	}
	all := w.possible()
	if w.Free || w.Fair {
		return all
	}
	first := w.turn(all)
	late := func(c choice) choice {
		do := c.Do
		c.Do = func(n *world) { n.Left.Delay--; do(n) }
		return c
	}
	var out []choice
	idle := slices.ContainsFunc(all, func(c choice) bool { return c.Sort == event })
	for _, c := range all {
		if c.Sort == clock && first == "" && idle {
			if w.Left.Wait == 0 {
				continue
			}
			do := c.Do
			c.Do = func(n *world) { n.Left.Wait--; do(n) }
		}
		switch {
		case c.Sort == fault && c.Thread != "" && c.Thread != first, c.Sort == work && c.Thread != first:
		case first == "", c.Sort == fault, c.Sort == work:
			if c.Sort == work {
				do := c.Do
				c.Do = func(n *world) { n.Late = without1(n.Late, first); do(n) }
			}
			out = append(out, c)
		case w.Left.Delay > 0:
			out = append(out, late(c))
		}
	}
	if first != "" && w.Left.Delay > 0 {
		out = append(out, late(choice{first + " waits", fault, first, func(n *world) { n.Late = append(without1(n.Late, first), first) }}))
	}
	return out
}

func without1(list []string, s string) []string {
	var rest []string
	for _, o := range list {
		if o != s {
			rest = append(rest, o)
		}
	}
	return rest
}

// turn is the thread that does something next, "" if none can.
func (w *world) turn(all []choice) string {
	late := ""
	at := len(w.Late)
	for _, c := range all {
		if c.Sort != work {
			continue
		}
		k := slices.Index(w.Late, c.Thread)
		if k < 0 {
			return c.Thread
		}
		if k < at {
			late, at = c.Thread, k
		}
	}
	return late
}

// possible is everything that can happen next.
func (w *world) possible() []choice {
	var all []choice
	add := func(s sort, name string, do func(*world)) {
		thread := ""
		if s == work {
			thread = name
		}
		all = append(all, choice{name, s, thread, do})
	}
	for i := range w.Agents {
		if w.Agents[i].Life == alive {
			w.agentChoices(i, add)
		}
	}
	for k := range all {
		if base, _, found := strings.Cut(all[k].Name, ", "); found && all[k].Sort == fault {
			all[k].Thread = base
		}
	}
	busy := slices.ContainsFunc(all, func(c choice) bool { return c.Sort == work })
	w.environment(add)
	if busy && w.Fair {
		return all
	}
	move := func(name string, next time.Time) {
		add(clock, name, func(n *world) { n.Now = next; n.Truth.Trouble = n.Truth.Trouble || busy || name == "leap" })
	}
	next, ok := w.timer(true)
	far, leaps := w.timer(false)
	leaps = leaps && !w.Fair && far.After(next)
	if ok && (w.Free || w.Fair || !leaps) {
		move("tick", next)
	}
	if leaps {
		move("leap", far)
	}
	return all
}

type adder func(s sort, name string, do func(*world))

func (w *world) agentChoices(i int, add adder) {
	a := &w.Agents[i]
	name := a.Inc + " "
	both := func(what string, writes bool, do func(*world, way)) {
		add(work, name+what, func(n *world) { do(n, through) })
		if writes && w.Left.Unknown > 0 {
			lose := func(n *world) { n.Left.Unknown--; n.Truth.Trouble = true }
			add(fault, name+what+", answer lost", func(n *world) { lose(n); do(n, answerLost) })
			add(fault, name+what+", request lost", func(n *world) { lose(n); do(n, requestLost) })
		}
		if writes && w.Left.Slow > 0 {
			add(fault, name+what+", request late", func(n *world) {
				n.Left.Slow, n.Truth.Trouble = n.Left.Slow-1, true
				do(n, requestLate)
			})
		}
	}
	if len(a.Engine) > 0 {
		add(work, name+string(a.Engine[0].Kind), func(n *world) { n.engine(i) })
		if a.Engine[0].Kind == machine.DoStage && w.Left.Stage > 0 {
			add(fault, name+"stage fails", func(n *world) {
				n.Left.Stage, n.Truth.Trouble = n.Left.Stage-1, true
				n.Agents[i].Engine = n.Agents[i].Engine[1:]
				n.tell(i, machine.Event{Kind: machine.StageFailed, Class: registry.ClassData, Cause: "no input"})
			})
		}
	}
	if w.gangReady(i) {
		both(string(a.Gang.E.Kind), w.gangWrites(a), func(n *world, how way) { n.gang(i, how) })
	}
	if w.connected(a) {
		w.registryChoices(i, name, add, both)
	}
	for _, t := range a.Timers {
		if !t.At.After(w.Now) {
			add(work, name+"timer "+string(t.E.Timer.Kind), func(n *world) { n.fire(i) })
			break
		}
	}
	w.processChoices(i, name, add)
	if w.saveReady(a) {
		add(work, name+"answers the save", func(n *world) { n.answerSave(i) })
	}
}

// saveReady tells whether an agent has yet to answer the last save.
func (w *world) saveReady(a *agent) bool {
	d, r := a.Watch.D, a.Member.Record
	return w.S.Saves && d.Save != nil && a.Proc.Live && w.connected(a) && w.holds(a) && !a.Member.Unsure && a.Gang == nil &&
		(r.Saved == nil || r.Saved.Seq < d.Save.Seq)
}

func (w *world) answerSave(i int) {
	a := &w.Agents[i]
	after := clone(a.Member.Record)
	after.Saved = &registry.Saved{Seq: a.Watch.D.Save.Seq}
	a.Member.Unsure = true
	got, _ := w.commit(i, "T10b", through, opSession(keyLive(a.In), a.Member.Session), opCAS(keyMember(a.In), a.Member.Index, after))
	if got == done {
		a.Member.Record, a.Member.Index, a.Member.Unsure = after, w.KV.Keys[keyMember(a.In)].Index, false
		w.Truth.Saved = with(w.Truth.Saved, after.Run+"/"+a.In.String(), after.Saved.Seq)
	}
}

func (w *world) registryChoices(i int, name string, add adder, both func(string, bool, func(*world, way))) {
	a := &w.Agents[i]
	if w.stale(a) {
		add(work, name+"sees", func(n *world) { n.observe(i, true) })
	}
	if a.Member.On && !a.Member.Over && !w.holds(a) && !w.Now.Before(a.Member.Retry) && (a.Gang == nil || !w.writes(a.Gang)) {
		both("renews", a.Member.Attach != 0 || w.Truth.Lost, func(n *world, how way) {
			if n.Agents[i].Member.Attach != 0 {
				n.attach(i, how)
			} else {
				n.reconcile(i, nil, how)
			}
		})
	}
	if w.mayAdopt(a) {
		if _, there := w.KV.Keys[keyDirective]; there { // as the member does by itself
			add(event, name+"brings the directive forward", func(n *world) { n.adopt(i, through) })
		}
		adopts := func(f *faults) *int { return &f.Adopt }
		spend(add, w.Left.Adopt, name+"adopts the app", adopts, func(n *world) { n.adopt(i, through) })
		if w.Left.Slow > 0 {
			spend(add, w.Left.Adopt, name+"adopts the app, request late", adopts, func(n *world) {
				n.Left.Slow--
				n.adopt(i, requestLate)
			})
		}
	}
	if w.vacant(a) && (a.Member.On || !w.S.without(noNewcomers)) {
		both("elects itself", true, func(n *world, how way) { n.elect(i, how) })
	}
	if w.conductReady(i) {
		t := a.Tenure
		writes := len(t.Effects) > 0 && !reads(t.Effects[0]) && !t.Reread
		both("conducts", writes, func(n *world, how way) { n.conduct(i, how) })
	}
	if w.hears(i, false) {
		add(work, name+"hears who is ready", func(n *world) { n.hear(i, false) })
	}
	if w.hears(i, true) {
		add(work, name+"hears what is asked", func(n *world) { n.hear(i, true) })
	}
}

func (w *world) writes(g *gangEffect) bool {
	return g.E.Kind != machine.DoJoin && g.E.Kind != machine.DoReadRoster
}

func (w *world) gangWrites(a *agent) bool {
	switch a.Gang.E.Kind {
	case machine.DoJoin:
		return a.Joining.Step == toClaim || a.Joining.Step == toAct
	case machine.DoReadRoster:
		return false
	}
	return a.Member.On && !a.Member.Over && (!a.Member.Unsure || a.Member.Attach != 0)
}

func (w *world) processChoices(i int, name string, add adder) {
	a := &w.Agents[i]
	if !a.Proc.Live || len(a.Engine) > 0 {
		return
	}
	if a.Proc.Asked {
		add(work, name+"process stops", func(n *world) { n.gone(i, nil, 15) })
	}
	zero, one := 0, 1
	if w.waited(a.In.Component) {
		add(event, name+"process ends with 0", func(n *world) { n.gone(i, &zero, 0) })
	}
	if w.Left.Fail > 0 {
		add(fault, name+"process fails", func(n *world) {
			n.Left.Fail, n.Truth.Trouble = n.Left.Fail-1, true
			n.gone(i, &one, 0)
		})
	}
	if !a.M.Up && a.M.Policy.Ordered {
		add(work, name+"process is up", func(n *world) {
			n.noteUp(i)
			n.tell(i, machine.Event{Kind: machine.Up, Attempt: n.Agents[i].M.Attempt})
		})
	}
}

func (w *world) noteUp(i int) {
	a := &w.Agents[i]
	w.Truth.Up = with(w.Truth.Up, at(w.facts(a).Run, a.Proc.Gen, a.In), true)
}

// gone ends a process, with the proof.
func (w *world) gone(i int, code *int, signal int) {
	a := &w.Agents[i]
	if code != nil && *code == 0 {
		w.noteUp(i)
	}
	a.Proc.Live, a.Proc.Asked = false, false
	w.tell(i, machine.Event{Kind: machine.Gone, Attempt: a.M.Attempt, Exit: &machine.Exit{
		Code: code, Signal: signal, At: w.Now, CutOff: w.cutByGuard(i),
	}})
}

func (w *world) cutByGuard(i int) bool {
	return w.Agents[i].Member.On && w.standing(i) == conductor.CutOff
}

// engine does the next effect on the process.
func (w *world) engine(i int) {
	a := &w.Agents[i]
	e := a.Engine[0]
	a.Engine = a.Engine[1:]
	switch e.Kind {
	case machine.DoStage:
		a.Port = w.port(i)
		w.tell(i, machine.Event{Kind: machine.Staged, Policy: w.policy(a)})
	case machine.DoStart:
		if w.standing(i) == conductor.CutOff && !w.S.without(noFence) {
			w.tell(i, machine.Event{Kind: machine.Gone, Attempt: e.Attempt, Exit: &machine.Exit{CutOff: true, At: w.Now}})
			return
		}
		gen := e.Gen
		if a.Proc.Live {
			w.bad("S1: agent %s starts a second process", a.Inc)
		}
		a.Proc = process{Live: true, Gen: gen, End: a.Fence.End(times())}
		w.checkStart(i, gen)
		w.tell(i, machine.Event{Kind: machine.Started, Attempt: e.Attempt})
	case machine.DoTerminate:
		if a.Proc.Live {
			a.Proc.Asked = true
		}
		if a.Proc.Live && w.S.without(noProof) && a.M.Reason == machine.ForRebuild {
			w.tell(i, machine.Event{Kind: machine.Gone, Attempt: a.M.Attempt, Exit: &machine.Exit{Signal: 15, At: w.Now}})
		}
	case machine.DoKill:
		if a.Proc.Live {
			w.gone(i, nil, 9)
		}
	case machine.DoRebind:
		w.tell(i, machine.Event{Kind: machine.Rebound, Attempt: e.Attempt, On: true})
	}
}

// fire lets the first due timer fire.
func (w *world) fire(i int) {
	a := &w.Agents[i]
	for k, t := range a.Timers {
		if !t.At.After(w.Now) {
			a.Timers = slices.Delete(a.Timers, k, k+1)
			w.tell(i, t.E)
			return
		}
	}
}

// settle does what happens by itself at once: renewals, the guards, sessions that are over.
func (w *world) settle() {
	for _, id := range slices.Sorted(maps.Keys(w.KV.Sessions)) {
		l := w.KV.Sessions[id]
		switch {
		case w.renewed(l), w.Out: // a registry that is down ends no session
			l.Heard = w.Now
			w.KV.Sessions[id] = l
		case w.Now.Sub(l.Heard) >= 2*times().TTL:
			w.KV.end(id)
		}
	}
	for i := range w.Agents {
		a := &w.Agents[i]
		if w.connected(a) && a.Member.On && !a.Member.Over && w.holds(a) {
			a.Member.Heard = w.moment()
		}
		if !w.S.without(noFence) {
			w.guardHost(i)
		}
		kills := !w.S.without(noFence) && !(a.Life == dead && w.S.without(noGuard))
		if a = &w.Agents[i]; a.Proc.Live && w.moment() >= a.Proc.End && kills {
			a.Proc.Live = false
			if a.Life == alive {
				w.tell(i, machine.Event{Kind: machine.Gone, Attempt: a.M.Attempt, Exit: &machine.Exit{Signal: 9, CutOff: true, At: w.Now}})
			}
		}
	}
	for i := range w.Agents { // without delay, and seen by nobody else
		for a := &w.Agents[i]; a.Life == alive && len(a.Engine) > 0 &&
			(a.Engine[0].Kind == machine.DoRebind || a.Engine[0].Kind == machine.DoTerminate); a = &w.Agents[i] {
			w.engine(i)
		}
		if a := &w.Agents[i]; a.Tenure != nil && a.Tenure.Silent.IsZero() && !w.connected(a) {
			a.Tenure.Silent = w.Now
		}
	}
	w.deserted()
	w.fenced()
}

func (w *world) renewed(l lease) bool { return !l.Left && w.connected(&w.Agents[l.Owner]) }

// timer is the next moment at which something is due. Without polls, those of newcomers and conductors are left out:
// whoever is slow sees what has come about meanwhile.
func (w *world) timer(polls bool) (next time.Time, ok bool) {
	due := func(t time.Time) {
		if t.After(w.Now) && (!ok || t.Before(next)) {
			next, ok = t, true
		}
	}
	for _, l := range w.KV.Sessions {
		if !w.renewed(l) {
			due(l.Heard.Add(times().TTL))
			due(l.Heard.Add(2 * times().TTL))
		}
	}
	moment := func(d time.Duration) { due(w.Now.Add(d - w.moment())) }
	for i := range w.Agents {
		a := &w.Agents[i]
		if a.Proc.Live && !w.connected(a) {
			moment(a.Proc.End)
		}
		if a.Life != alive {
			continue
		}
		for _, t := range a.Timers {
			due(t.At)
		}
		if g := a.Gang; g != nil {
			if g.E.Kind == machine.DoLeave {
				due(g.Since.Add(leavePatience))
			}
			if g.E.Kind == machine.DoJoin && a.Joining.Step == toWait && w.connected(a) && (polls || !a.Joining.Idle) {
				due(a.Joining.Next)
			}
		}
		if w.connected(a) {
			due(a.Member.Retry)
			if t := a.Tenure; t != nil {
				due(t.Rest)
				if polls {
					due(t.Wake)
				}
				for _, l := range t.State.Losses() {
					due(l.End)
				}
			}
		}
		if a.Member.On && a.Member.Heard < w.moment() {
			h := a.Member.Heard
			moment(h + times().Silent())
			moment(h + times().Fence() + registry.AskRound)
			moment(h + times().Fence() + registry.EvidenceValid)
			moment(h + times().Outage())
			if w.standing(i) == conductor.Holding {
				moment(a.Fence.Evidence + registry.EvidenceValid)
			}
		}
	}
	return next, ok
}

// environment are the choices of launchers, users, operators, hosts and the network.
func (w *world) environment(add adder) {
	for h := range w.Cuts {
		if w.Cuts[h] {
			add(event, hostName(h)+" is connected again", func(n *world) { n.Cuts[h] = false })
		}
	}
	if w.Out {
		add(event, "the registry answers again", func(n *world) { n.Out = false })
	}
	for k, r := range w.Flight {
		add(event, fmt.Sprintf("%s's %s arrives", w.Agents[r.Agent].Inc, r.Name), func(n *world) {
			n.Flight = slices.Delete(n.Flight, k, k+1)
			n.asked(r)
			n.commit(r.Agent, r.Name, through, r.Ops...)
		})
	}
	w.launches(add)
	if w.Fair {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.KV.Sessions)) {
		if l := w.KV.Sessions[id]; (w.Free || w.Left.Early > 0) && !w.renewed(l) && w.Now.Sub(l.Heard) >= times().TTL {
			add(event, "session "+id+" expires", func(n *world) { n.KV.end(id) })
		}
	}
	w.faults(add)
	w.users(add)
}

// spend makes a fault of a budget.
func spend(add adder, left int, name string, budget func(*faults) *int, do func(*world)) {
	if left > 0 {
		add(fault, name, func(n *world) {
			*budget(&n.Left)--
			n.Truth.Trouble = true
			do(n)
		})
	}
}

func (w *world) faults(add adder) {
	for i := range w.Agents {
		a := &w.Agents[i]
		if a.Life != alive {
			continue
		}
		name := a.Inc + " "
		spend(add, w.Left.Die, name+"dies", func(f *faults) *int { return &f.Die }, func(n *world) { n.die(i) })
		if a.Proc.Live {
			spend(add, w.Left.Orphan, name+"dies, its process does not", func(f *faults) *int { return &f.Orphan }, func(n *world) {
				n.die(i)
				n.Agents[i].Proc.Live = true
			})
		}
		spend(add, w.Left.Term, name+"is told to end", func(f *faults) *int { return &f.Term }, func(n *world) {
			n.tell(i, machine.Event{Kind: machine.Term, Signal: 15})
		})
	}
	for h := range w.Cuts {
		name := hostName(h) + " "
		if !w.Cuts[h] {
			spend(add, w.Left.Cut, name+"is cut off", func(f *faults) *int { return &f.Cut }, func(n *world) { n.Cuts[h] = true })
		}
		spend(add, w.Left.Host, name+"boots", func(f *faults) *int { return &f.Host }, func(n *world) { n.boot(h) })
	}
	if !w.Out {
		spend(add, w.Left.Outage, "the registry is down", func(f *faults) *int { return &f.Outage }, func(n *world) { n.Out = true })
	}
	for _, id := range slices.Sorted(maps.Keys(w.KV.Sessions)) {
		if w.renewed(w.KV.Sessions[id]) {
			spend(add, w.Left.Early, "session "+id+" ends early", func(f *faults) *int { return &f.Early }, func(n *world) { n.KV.end(id) })
		}
	}
	spend(add, w.Left.Wipe, "the keys are deleted", func(f *faults) *int { return &f.Wipe }, func(n *world) {
		n.KV.Keys = map[string]entry{}
		n.KV.Index++
		n.forget()
	})
	if w.Left.Restore > 0 && w.Backup == nil && len(w.KV.Keys) > 0 {
		add(event, "a copy is made", func(n *world) { c := n.KV.clone(); n.Backup = &c })
	}
	if w.Backup != nil {
		spend(add, w.Left.Restore, "the copy is restored", func(f *faults) *int { return &f.Restore }, func(n *world) {
			n.KV = n.Backup.clone()
			for id, l := range n.KV.Sessions {
				l.Heard = n.Now
				n.KV.Sessions[id] = l
			}
			n.forget()
		})
	}
}

// forget: what the registry has lost, nobody can know.
func (w *world) forget() {
	w.Truth.Lost, w.Truth.Since = true, w.Now
	w.Truth.Verdicts = map[string]registry.Outcome{}
	for _, k := range w.KV.under("verdict/") {
		v, _, _ := read[registry.Verdict](w.KV, k)
		w.Truth.Verdicts[v.Run] = v.Outcome
	}
}

// boot ends everything on a host.
func (w *world) boot(h int) {
	w.Boots[h]++
	for i := range w.Agents {
		if w.Agents[i].Host == h {
			w.Agents[i].Proc.Live = false
			if w.Agents[i].Life == alive {
				w.die(i)
			}
		}
	}
}

// launches are what the launcher and the user start.
func (w *world) launches(add adder) {
	d, _, ok := read[registry.Directive](w.KV, keyDirective)
	run := 1
	if ok {
		_, _ = fmt.Sscan(d.Run, &run)
	} else if n := len(w.Agents); n > 0 {
		run = w.Agents[n-1].Run
	}
	room := len(w.Agents) < w.S.Agents || w.Fair && len(w.Agents) < w.S.Agents+12
	if _, over := w.KV.Keys[keyVerdict(runName(run))]; over {
		w.follow(run, add)
		return
	}
	if !room {
		return
	}
	facts := (*w.Facts)[run-1]
	all := facts.Instances(d)
	for c, n := range d.Target {
		for k := d.Counts[c]; k < n; k++ {
			all = append(all, registry.Instance{Component: c, Index: k})
		}
	}
	slices.SortFunc(all, func(a, b registry.Instance) int { return strings.Compare(a.String(), b.String()) })
	for _, in := range all {
		w.relaunch(in, run, add)
	}
}

// relaunch starts an agent of an index that has none, or with a fault a second one.
func (w *world) relaunch(in registry.Instance, run int, add adder) {
	last, there := 0, false
	for _, a := range w.Agents {
		if a.In == in && a.Run == run {
			last = a.Host
			there = there || a.Life == alive
		}
	}
	for h := range w.Cuts {
		if w.Fair && (h != last || w.Cuts[h]) {
			continue
		}
		name := fmt.Sprintf("%s is launched on %s", in, hostName(h))
		switch {
		case !there:
			add(event, name, func(n *world) { n.launch(in, h, run) })
		case !w.Fair:
			spend(add, w.Left.Dup, name+" again", func(f *faults) *int { return &f.Dup }, func(n *world) { n.launch(in, h, run) })
		}
	}
}

// follow starts the next run, or an agent of this one that comes too late.
func (w *world) follow(run int, add adder) {
	if w.Fair {
		return
	}
	if run < w.S.Runs && len(w.Agents) < w.S.Agents {
		add(event, "run "+runName(run+1)+" is launched", func(n *world) { n.begin(run + 1) })
	}
	for r := 1; r <= run; r++ {
		spend(add, w.Left.Late, "an agent of run "+runName(r)+" comes late", func(f *faults) *int { return &f.Late }, func(n *world) {
			n.launch(registry.Instance{Component: "w", Index: 0}, 0, r)
		})
	}
}

// begin launches all agents of a run.
func (w *world) begin(run int) {
	for k, in := range (*w.Facts)[run-1].Instances(registry.Directive{}) {
		w.launch(in, k%len(w.Cuts), run)
	}
}

func (w *world) users(add adder) {
	d, e, ok := read[registry.Directive](w.KV, keyDirective)
	if !ok || d.Verdict != nil || w.Out {
		return
	}
	ask := func(n *world, kind string, how way, args map[string]string) {
		n.Asked++
		id := fmt.Sprint(n.Asked)
		a := registry.Ask{Kind: kind, ID: id, By: "stop", Run: d.Run, Gen: d.Gen, Args: args}
		if kind == registry.AskGone {
			a.Run, a.Gen = "", 0
		}
		n.commit(0, "ask", how, opIndex(keyDirective, e.Index), opSet(keyAsk(kind, id), a))
	}
	stop := func(how way) func(*world) {
		return func(n *world) {
			n.Truth.Stops = with(n.Truth.Stops, d.Run, true)
			ask(n, registry.AskStop, how, nil)
		}
	}
	spend(add, w.Left.Stop, "the user stops the run", func(f *faults) *int { return &f.Stop }, stop(through))
	if w.Left.Slow > 0 {
		spend(add, w.Left.Stop, "the user stops the run, request late", func(f *faults) *int { return &f.Stop }, func(n *world) {
			n.Left.Slow--
			stop(requestLate)(n)
		})
	}
	if w.S.Saves {
		spend(add, w.Left.Save, "the user asks for a save", func(f *faults) *int { return &f.Save }, func(n *world) {
			ask(n, registry.AskSave, through, nil)
		})
	}
	have := w.S.Workers
	if k, ok := d.Counts["w"]; ok {
		have = k
	}
	flex := func(n *world, k int) {
		n.Truth.Flexes = with(n.Truth.Flexes, d.Run, true)
		ask(n, registry.AskFlex, through, map[string]string{"w": fmt.Sprint(k)})
	}
	spend(add, w.Left.Up, "the user asks for one more", func(f *faults) *int { return &f.Up }, func(n *world) { flex(n, have+1) })
	if have > 1 {
		spend(add, w.Left.Down, "the user asks for one less", func(f *faults) *int { return &f.Down }, func(n *world) { flex(n, have-1) })
	}
	for _, a := range w.Agents {
		if m, _, ok := read[registry.Member](w.KV, keyMember(a.In)); ok && m.Inc == a.Inc && a.Life == dead && !a.Proc.Live {
			spend(add, w.Left.Gone, "the operator says that "+a.Inc+" is gone", func(f *faults) *int { return &f.Gone }, func(n *world) {
				ask(n, registry.AskGone, through, map[string]string{"instance": a.In.String(), "inc": a.Inc})
			})
		}
	}
}
