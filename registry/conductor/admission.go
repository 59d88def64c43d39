package conductor

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Admit decides what a newcomer does: found the app, claim the index, stand by or leave. It calls alive only for
// processes of this machine, boot and pid namespace.
func Admit(look Snapshot, me Newcomer, alive func(registry.Process) Life) Admission {
	if look.App == nil && look.Directive == nil {
		if d := misplaced(look, me); d != nil {
			return d
		}
		if why := vanished(look); why != "" {
			return Vanished{Why: why}
		}
		return Found{App: foundRecord(me, look.Now), Directive: firstDirective(me, look.Now)}
	}
	if look.App == nil || look.Directive == nil {
		return Retry{Why: "the app's record and its directive contradict each other"}
	}
	if d := refusal(look, me); d != nil {
		return d
	}
	if d := outside(look, me); d != nil {
		return d
	}
	return decideIndex(look, me, alive)
}

// vanished tells why an app that the registry does not know is there all the same; "": it is not. Its processes may
// run: a second founding would start them again.
func vanished(look Snapshot) string {
	switch {
	case look.Seen:
		return "it knows nothing of the app any more"
	case len(look.Holders) == 0:
		return ""
	}
	return "it knows nothing of the app, but agents of it live: " + holders(look)
}

const namedHolders = 3 // how many holders a sentence names

func holders(look Snapshot) string {
	return some(look.Holders, namedHolders, func(name string) string { return name })
}

// begins tells whether the newcomer's run may follow the one that the registry knows.
func begins(look Snapshot, me Newcomer) bool {
	d := look.Directive
	return me.NewRun && d.Run != me.Run && look.Verdict == nil &&
		(d.Verdict != nil || !look.AnyLive && look.DirectiveSession == "")
}

// refusal answers a newcomer for reasons that do not depend on its index: run, build, definition, verdict, times.
func refusal(look Snapshot, me Newcomer) Admission {
	d := look.Directive
	if begins(look, me) {
		if d := misplaced(look, me); d != nil {
			return d
		}
		if len(look.Holders) > 0 { // the registry may have gone back, and they may be of this very run
			return Wait{Why: fmt.Sprintf("run %s is over, but agents live of which the registry knows nothing: %s",
				d.Run, holders(look))}
		}
		return NewRun{
			App: foundRecord(me, look.Now), AppIndex: look.AppIndex, Directive: nextRun(*d, me, look.Now),
			Free: d.Claimable(),
		}
	}
	admitted := look.App.Proto.Admits(me.Speaks)
	switch {
	case look.Verdict != nil && d.Run != me.Run: // a finished run never lives again
		return Refuse{Err: &FinishedError{Verdict: *look.Verdict}}
	case d.Verdict == nil && d.Run != me.Run:
		return Refuse{Err: &RunError{Have: d.Run, Want: me.Run}}
	case admitted && look.App.Digest != me.digestIn(look.App.Proto):
		return Refuse{Err: &DigestError{Have: me.digestIn(look.App.Proto), Want: look.App.Digest}}
	case d.Verdict != nil:
		return Refuse{Err: &FinishedError{Verdict: *d.Verdict}}
	case look.Verdict != nil:
		return Refuse{Err: &FinishedError{Verdict: *look.Verdict}}
	case !admitted:
		return Refuse{Err: &ProtoError{Run: d.Run, Have: me.Speaks.OrFirst(), Want: look.App.Proto.OrFirst()}}
	}
	if want := look.App.Times; want.Known() {
		if differ := me.Facts.Times.Agreed().Differ(want); len(differ) > 0 {
			return Refuse{Err: &TimesError{Differ: differ}}
		}
	}
	return nil
}

// misplaced refuses a newcomer whose index is not part of the run that it would begin. The run is not begun.
func misplaced(look Snapshot, me Newcomer) Admission {
	first := firstDirective(me, look.Now)
	look.Directive = &first
	if d, ok := outside(look, me).(Refuse); ok {
		return d
	}
	return nil
}

// outside answers a newcomer whose index the app does not have. Under a launcher the newcomer waits: a flex may add the
// index.
func outside(look Snapshot, me Newcomer) Admission {
	in := look.Instance
	at := slices.IndexFunc(me.Facts.Components, func(c ComponentFacts) bool { return c.Name == in.Component })
	if at < 0 {
		return Refuse{Err: &IndexError{Instance: in, Count: -1}}
	}
	n := max(me.Facts.count(*look.Directive, at), look.Directive.Target[in.Component])
	switch {
	case in.Index < n:
		return nil
	case me.Instance == nil:
		return Retry{Why: fmt.Sprintf("%s: there are %d now", in, n)}
	case me.Launcher:
		return Wait{Why: fmt.Sprintf("%s: there are only %d now", in, n)}
	}
	return Refuse{Err: &IndexError{Instance: in, Count: n}}
}

func decideIndex(look Snapshot, me Newcomer, alive func(registry.Process) Life) Admission {
	m := look.Member
	if m == nil && look.LiveSession != "" {
		return Retry{Why: look.Instance.String() + " is locked, but has no record"}
	}
	if m == nil && slices.Contains(look.Holders, look.Instance.String()) {
		return Vanished{Why: fmt.Sprintf("it has no record of %s, but its agent lives", look.Instance)}
	}
	if m != nil && m.Inc == me.Member.Inc && look.LiveSession != "" {
		return Retry{Why: look.Instance.String() + " is mine already"}
	}
	proof := prove(look, me, alive)
	if m != nil && resultCounts(look, me) && !(answering(look, me, alive) && !me.Launcher) {
		if me.Instance == nil {
			return Retry{Why: look.Instance.String() + " has a result"}
		}
		return Wait{Why: fmt.Sprintf("%s has %s; its result counts", look.Instance, m.Phase)}
	}
	if proof != ProofNone {
		return claim(look, me, proof, alive)
	}
	switch {
	case me.Instance == nil:
		return Retry{Why: look.Instance.String() + " is held"}
	case !me.Launcher && answering(look, me, alive):
		return Refuse{Err: &HeldError{Instance: look.Instance, Holder: *m}}
	}
	return Standby{Holder: *m}
}

// answering tells whether the holder is known to be alive: its API answers, or its process is in /proc.
func answering(look Snapshot, me Newcomer, alive func(registry.Process) Life) bool {
	if look.Answers {
		return true
	}
	return look.LiveSession != "" && SamePIDs(look.Member.Process, me.Member.Process) &&
		alive(look.Member.Process) == LifeAlive
}

// resultCounts tells whether the record holds a result that no newcomer may overwrite: `ended`, or a final failure that
// the conductor has not judged yet. Results of services do not count.
func resultCounts(look Snapshot, me Newcomer) bool {
	c, ok := me.Facts.component(look.Instance.Component)
	return ok && c.Waited && resultOf(*look.Member, *look.Directive, c.Scope) != noResult
}

// prove finds the first proof that the process of the old holder is gone.
func prove(look Snapshot, me Newcomer, alive func(registry.Process) Life) Proof {
	m := look.Member
	free := look.LiveSession == ""
	switch {
	case m == nil:
		return ProofFree
	case free && (m.Phase == registry.PhaseLeft || m.Phase == registry.PhaseLost):
		return ProofFree
	case free && m.Inc == me.Member.Inc: // my claim's session ended before its answer came; I have started nothing
		return ProofFree
	case free && (m.Phase == registry.PhaseFailed || m.Phase == registry.PhaseEnded):
		return ProofRecord
	case look.Answers:
		return ProofNone
	}
	if SamePIDs(m.Process, me.Member.Process) {
		switch alive(m.Process) {
		case LifeDead:
			return ProofProcess
		case LifeAlive:
			return ProofNone
		case LifeUnknown: // another proof may decide
		}
	}
	switch {
	case sameMachine(m.Process, me.Member.Process) && m.Addr == me.Member.Addr && m.Boot != "" &&
		me.Member.Boot != "" && m.Boot != me.Member.Boot:
		return ProofBoot
	case m.Slot != "" && m.Slot == me.Member.Slot:
		return ProofSlot
	case declaredGone(look.Asks, look.Instance, m.Inc):
		return ProofOperator
	}
	return ProofNone
}

// sameMachine: an unknown machine equals no other. Older agents call it `/`.
func sameMachine(a, b registry.Process) bool {
	return a.Machine == b.Machine && a.Machine != "" && a.Machine != "/"
}

// SamePIDs tells whether two processes have the same table of pids. Without the comparison of namespaces, pid 1 of any
// container would count as dead in the next one.
func SamePIDs(a, b registry.Process) bool {
	return sameMachine(a, b) && a.Boot != "" && a.Boot == b.Boot && a.PidNS != "" && a.PidNS == b.PidNS
}

// declaredGone tells whether the operator declared this incarnation gone: an ask of kind gone with the args `instance`
// and `inc`. Without the incarnation it would also hold for every successor.
func declaredGone(asks []registry.Ask, in registry.Instance, inc string) bool {
	return slices.ContainsFunc(asks, func(a registry.Ask) bool {
		return a.Kind == registry.AskGone && inc != "" && a.Args["instance"] == in.String() && a.Args["inc"] == inc
	})
}

func claim(look Snapshot, me Newcomer, proof Proof, alive func(registry.Process) Life) Claim {
	c := Claim{
		Instance: look.Instance, Proof: proof, Evict: look.LiveSession,
		MembersIndex: look.MemberIndex, DirectiveIndex: look.DirectiveIndex,
		Record: claimRecord(look, me),
	}
	m := look.Member
	switch {
	case m == nil || proof == ProofRecord:
		return c // its agent may be alive; it has proved that the process is gone
	case proof == ProofFree:
		// A lost member was given up for its silence alone. If its agent is dead on this host, its training process may
		// still run.
		if f := m.Process; m.Phase == registry.PhaseLost && SamePIDs(m.Process, me.Member.Process) &&
			alive(f) == LifeDead {
			c.Clear = &f
		}
		return c
	}
	if SamePIDs(m.Process, me.Member.Process) {
		f := m.Process
		c.Clear = &f
	}
	if look.Directive.By == m.Inc {
		c.Unseat = look.DirectiveSession
	}
	return c
}

// claimRecord is the record of the newcomer: its own facts, and what outlives the old holder: budget, attempts, the end
// of the last process, and the ports to ask for first.
func claimRecord(look Snapshot, me Newcomer) registry.Member {
	d := *look.Directive
	r := me.Member
	r.Run, r.Digest, r.Gen, r.Phase = d.Run, look.App.Digest, 0, registry.PhaseJoined
	r.Attempt, r.Budget, r.Exit, r.Was = 1, registry.Budget{}, nil, ""
	if r.Since.IsZero() {
		r.Since = wall(look.Now)
	}
	m := look.Member
	if m == nil || m.Run != d.Run {
		return r
	}
	r.Was, r.Budget, r.Exit, r.Attempt = m.Inc, m.Budget, m.Exit, max(m.Attempt, 1)
	if m.Inc == r.Inc {
		r.Was = m.Was
	}
	if m.Exit != nil && m.Exit.Gen != d.Gen {
		r.Exit = nil
	}
	if started(*m, d) {
		r.Attempt++
	}
	if resultGen(*m) < d.Retries.Gen {
		r.Budget = r.Budget.Fresh() // each full restart resets the budgets
	}
	if len(r.Ports) == 0 && sameMachine(m.Process, me.Member.Process) {
		r.Ports = m.Ports
	}
	return charged(r, *m, look, me)
}

// started tells whether a process ran, or may have run, since the attempt was last counted.
func started(m registry.Member, d registry.Directive) bool {
	return m.Phase != registry.PhaseJoined && !(m.Phase == registry.PhaseReady && d.Act == registry.ActWait &&
		m.Gen == d.Gen)
}

// charged charges the death of the old holder once. It applies to the instance scope: the claimer of a record in ready
// charges it under a run directive. If the budget is spent, the claim itself reports the final failure.
func charged(r, m registry.Member, look Snapshot, me Newcomer) registry.Member {
	d := *look.Directive
	c, ok := me.Facts.component(look.Instance.Component)
	if !ok || !c.Waited || c.Scope != registry.ScopeInstance || d.Act != registry.ActRun ||
		m.Phase != registry.PhaseReady {
		return r
	}
	b, ok := Charge(m.Budget, c.Budget, wall(look.Now), look.Step)
	r.Budget = b
	if !ok {
		r.Phase, r.Gen = registry.PhaseFailed, d.Gen
		r.Exit = &registry.MemberExit{
			Gen: d.Gen, Class: registry.ClassHost, Why: causeAgentDied, Final: true,
			At: wall(look.Now),
		}
	}
	return r
}

func foundRecord(me Newcomer, now time.Time) registry.AppRecord {
	a := me.Record
	a.Run, a.Digest, a.By, a.Times = me.Run, me.Digest, me.Member.Inc, me.Facts.Times.Agreed()
	a.Proto = me.Speaks.OrFirst()
	if a.Counts == nil {
		a.Counts = me.Facts.counts()
	}
	if a.Created.IsZero() {
		a.Created = wall(now)
	}
	return a
}

func firstDirective(me Newcomer, now time.Time) registry.Directive {
	return registry.Directive{
		Run: me.Run, Gen: 1, Act: registry.ActWait, Seq: 1, By: me.Member.Inc,
		Counts: foundRecord(me, now).Counts, Why: "founded", At: wall(now),
	}
}

// nextRun is T15's directive. The generation number goes on, so that no older process is mistaken for a member. The
// sealed roster stays until the next one is sealed: its members may have lost the registry together and still run
// (losses).
func nextRun(d registry.Directive, me Newcomer, now time.Time) registry.Directive {
	n := firstDirective(me, now)
	n.Gen, n.Seq, n.Roster, n.Why = d.Gen+1, d.Seq+1, d.Roster, "new run after "+d.Run
	return n
}
