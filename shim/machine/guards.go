package machine

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// guard is a named condition, so that the table can print itself.
type guard struct {
	name string
	test func(State, Event) bool
}

// Named values of the rule table, never written to.
var (
	always = guard{"", func(State, Event) bool { return true }}

	// toldToStop: also by another run's directive, when this run's last one was not heard.
	toldToStop = guard{"the directive says stop, or is another run's", func(s State, _ Event) bool {
		return s.Directive.Act == registry.ActStop || s.anotherRun()
	}}

	service = guard{"it is a service", func(s State, _ Event) bool { return s.Policy.Service }}

	// newGeneration: the gang forms a newer generation, and this agent has not acknowledged it yet but can.
	newGeneration = guard{"a newer generation waits", func(s State, _ Event) bool {
		return s.Directive.Act == registry.ActWait && s.Directive.Gen > s.Gen && s.Directive.Gen > s.Acking &&
			s.Bound && !s.Policy.Service
	}}
	released = guard{"our generation runs and our component may start", func(s State, e Event) bool {
		return s.mayStart() && s.Directive.Gen == s.Gen && (e.Gen == 0 || e.Gen == s.Gen)
	}}
	// heldBack: the wait for those before us is the conductor's to bound, step by step.
	heldBack = guard{"our generation runs and others start first", func(s State, _ Event) bool {
		return s.Directive.Act == registry.ActRun && s.Directive.Gen == s.Gen && !s.mayStart()
	}}
	// freeService: a service that follows nobody starts at once.
	freeService = guard{"it is a service and may start", func(s State, _ Event) bool {
		return s.Policy.Service && (!s.Policy.Follows || s.mayStart()) && !s.CutOff
	}}
	// mayRun: what is sealed while the agent is cut off is read again at Contact.
	mayRun = guard{"our generation runs, our component may start, and we are not cut off", func(s State, e Event) bool {
		return released.test(s, e) && !s.CutOff
	}}
	cutOff = guard{"it is cut off", func(s State, _ Event) bool { return s.CutOff }}
	// fenced: contact may be back before the process is gone.
	fenced = guard{"it was stopped for the fence, or is cut off", func(s State, _ Event) bool {
		return s.CutOff || s.Reason == ForFence
	}}
	shorterGrace = guard{"it has longer than a fence gives", func(s State, e Event) bool {
		return s.Until.Sub(e.At) > registry.FenceGrace
	}}
	movedService = guard{"it is a service and its ports are lost", func(s State, _ Event) bool {
		return s.Policy.Service && s.Moved
	}}
	moved   = guard{"its ports are lost", func(s State, _ Event) bool { return s.Moved }}
	inPlace = guard{"it restarts in place", func(s State, _ Event) bool {
		return s.Policy.Service || s.Policy.Scope == "instance"
	}}
	awaited = guard{"others wait for it", func(s State, _ Event) bool { return s.Policy.Ordered }}
	// removed: a flex down; an index of a flex up that is on its way counts.
	removed = guard{"the index counts no more", func(s State, _ Event) bool {
		return s.Directive.Drops(s.Instance)
	}}
	// rejoinable: the gang runs without us and one instance may come back to it alone.
	rejoinable = guard{"a newer generation runs and instances restart alone", func(s State, _ Event) bool {
		return s.Directive.Act == registry.ActRun && s.Directive.Gen > s.Gen && s.Directive.Gen > s.Acking &&
			s.Policy.Scope == "instance" && s.Bound && !s.Policy.Service
	}}
	unacknowledged = guard{"not acknowledged yet", func(s State, e Event) bool {
		return e.Gen > s.Gen && e.Gen > s.Acking
	}}
	overtaken = guard{"a newer generation forms", func(s State, _ Event) bool {
		return s.Directive.Gen > s.Gen && !s.Policy.Service
	}}
	// startsOver: a result of instance scope counts until the whole gang restarts, any other is run again.
	startsOver = guard{"a newer generation forms and our result does not stand", func(s State, e Event) bool {
		again := s.Directive.Restarts(s.ResultGen)
		return overtaken.test(s, e) && (s.Gen > 0 || again) &&
			(s.Policy.Scope != "instance" || s.Result != registry.PhaseEnded || again)
	}}
	// neverStaged: what staging left behind is for another agent to clear up.
	neverStaged = guard{"the whole gang restarts and we were never staged", func(s State, _ Event) bool {
		return s.Directive.Restarts(s.ResultGen) && s.Policy.Scope == ""
	}}

	spent = guard{"its predecessor's death spent the budget", func(_ State, e Event) bool {
		return e.Joined.Spent
	}}
	clean       = guard{"it ended with 0", func(_ State, e Event) bool { return e.Exit.OK() }}
	freeRetry   = guard{"its port was in use", func(s State, e Event) bool { return e.Exit.Free && s.FreeRetries < 3 }}
	restartable = guard{"it restarts in place and the budget allows", func(s State, e Event) bool {
		if s.Policy.Scope != "instance" || s.Exit.Final {
			return false
		}
		_, ok := conductor.Charge(s.Budget, s.Policy.Rule, e.At, s.Step)
		return ok
	}}
	// A service starts again whatever happens, and nobody waits for it.
	heldGang = guard{"its container is kept and the gang waits", func(s State, _ Event) bool {
		return s.Policy.Hold > 0 && !s.Policy.HoldEnds
	}}
	heldAtEnd = guard{"its container is kept and the gang goes on", func(s State, _ Event) bool {
		return s.Policy.Hold > 0
	}}
	kept = guard{"the container is kept", func(s State, _ Event) bool { return !s.HoldUntil.IsZero() }}
	// keptAtEnd: a run that was stopped is not looked at.
	keptAtEnd = guard{"the run failed and our container is kept", func(s State, _ Event) bool {
		v := s.Directive.Verdict
		return !s.HoldUntil.IsZero() && s.Policy.HoldEnds && s.Result == registry.PhaseFailed && !s.anotherRun() &&
			s.Directive.Act == registry.ActStop && v != nil && v.Outcome == registry.Failed
	}}
	runOverYet = guard{"the run's time is over and the run is not", func(s State, e Event) bool {
		return runOver.test(s, e) && !toldToStop.test(s, e)
	}}
	keptOrOther = guard{"the container is kept, or the timer is another", func(s State, e Event) bool {
		return !s.HoldUntil.IsZero() || e.Timer.Kind != timerHold
	}}
	startsOverTooLate = guard{"a newer generation forms and the run's time is over", func(s State, e Event) bool {
		return startsOver.test(s, e) && s.TimeIsOver
	}}
	// verdictCounts: who was superseded is no member any more.
	verdictCounts = guard{"the directive says stop and the index is ours", func(s State, e Event) bool {
		return toldToStop.test(s, e) && s.Reason != ForAnother
	}}
	serviceMoved = guard{"it is a service and its ports are lost", func(s State, e Event) bool {
		return s.Policy.Service && !e.On
	}}
	portsLost = guard{"its ports are lost", func(_ State, e Event) bool { return !e.On }}
	again     = guard{"for the second time", func(s State, _ Event) bool { return s.Terms > 1 }}

	graceOver = guard{"the grace is over", func(s State, e Event) bool {
		return e.Timer == timer{timerGrace, s.timers.grace}
	}}
	rested = guard{"the backoff is over and the ports are held", func(s State, _ Event) bool {
		return s.Rested && s.Bound && !s.CutOff
	}}
	timeIsOver  = guard{"the run's time is over", func(s State, _ Event) bool { return s.TimeIsOver }}
	barrierOver = guard{"the back-stop of the barrier", func(s State, e Event) bool {
		return e.Timer == timer{timerBarrier, s.timers.barrier}
	}}
	timeOver = guard{"its time is over", func(s State, e Event) bool {
		return e.Timer == timer{timerProcess, s.timers.process} || runOver.test(s, e)
	}}
	runOver = guard{"the run's time is over", func(s State, e Event) bool {
		return e.Timer == timer{timerRun, s.timers.run}
	}}
)

// mayStart tells that the directive releases our component, in its generation.
func (s State) mayStart() bool {
	return s.Directive.Act == registry.ActRun && s.Directive.Releases(s.Instance.Component)
}

func stoppedFor(r StopReason) guard {
	return guard{"stopped for " + string(r), func(s State, _ Event) bool { return s.Reason == r }}
}
