package machine

import (
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
	"github.com/muster-agent/muster/shim/exit"
)

// backstop is how much longer than the conductor an agent waits at the barrier by itself.
const backstop = 5 * time.Minute

// action is a named step of a rule: it changes the state and asks for effects.
type action struct {
	name string
	make func(*State, Event) []Effect
}

func simple(name string, kind effectKind) action {
	return action{name, func(s *State, _ Event) []Effect {
		return []Effect{{Kind: kind, Attempt: s.Attempt, Gen: s.Gen}}
	}}
}

// Named values of the rule table, never written to.
var (
	join    = simple("join", DoJoin)
	stage   = simple("stage", DoStage)
	publish = simple("publish", DoPublish)
	kill    = simple("kill", DoKill)
	rebind  = action{"hold the ports again", func(s *State, _ Event) []Effect {
		s.Bound = false
		return []Effect{{Kind: DoRebind, Attempt: s.Attempt}}
	}}

	acknowledge = action{"acknowledge", func(s *State, _ Event) []Effect {
		s.Acking = s.Directive.Gen
		out := []Effect{{Kind: DoAcknowledge, Gen: s.Directive.Gen, Attempt: s.Attempt}}
		// The conductor's clock begins again as well.
		if s.Directive.Retries.Gen == s.Directive.Gen || s.Directive.Pause() > 0 {
			out = append(out, s.armBarrier())
		}
		return out
	}}
	readRoster = action{"read the roster", func(s *State, _ Event) []Effect {
		return []Effect{{Kind: DoReadRoster, Gen: s.Directive.Gen, Roster: s.Directive.Roster}}
	}}
	start = action{"start the process", func(s *State, e Event) []Effect {
		s.Attempt++
		s.Begun = e.At
		s.Proc, s.Exit, s.Result, s.Reason, s.Bound, s.Up, s.Moved = max(s.Gen, 1), nil, "", "", false, false, false
		s.HoldUntil = time.Time{}
		begin := Effect{Kind: DoStart, Attempt: s.Attempt, Gen: s.Gen}
		// An instance that restarts alone resumes from its own newest checkpoint.
		if e.Kind == Sealed && s.Policy.Scope != "instance" {
			begin.Resume = s.Directive.Resume
		}
		if begin.Resume != nil {
			s.Step = max(0, min(s.Step, *begin.Resume)) // what was newer is given up, and may be reached again
		}
		out := []Effect{begin}
		if s.Policy.Duration > 0 {
			out = append(out, s.arm(&s.timers.process, timerProcess, s.Policy.Duration))
		}
		return out
	}}
	terminate = action{"ask it to stop", func(s *State, e Event) []Effect {
		return []Effect{{Kind: DoTerminate, Attempt: s.Attempt}, s.armGrace(e.At, s.StopGrace())}
	}}
	shorten = action{"cut the grace short", func(s *State, e Event) []Effect {
		return []Effect{s.armGrace(e.At, registry.FenceGrace)}
	}}

	reportEnded = action{"report success", func(s *State, e Event) []Effect {
		s.Result = registry.PhaseEnded
		return []Effect{s.report(registry.MemberExit{Gen: s.Gen, Code: e.Exit.Code}, e.At)}
	}}
	reportFailed = action{"report the failure", func(s *State, e Event) []Effect {
		s.Result = registry.PhaseFailed
		final := s.Exit.Final || s.Policy.Scope != "gang"
		return []Effect{s.report(registry.MemberExit{
			Gen: s.Gen, Code: s.Exit.Code, Signal: s.Exit.Signal, Class: s.class(), Why: s.Exit.beyond(), Final: final,
			Passing: s.Exit.Passing, LastOutput: s.Exit.LastOutput,
		}, e.At)}
	}}
	reportMismatch = action{"report that the row is another's", func(s *State, e Event) []Effect {
		s.Result = registry.PhaseFailed
		return []Effect{s.report(registry.MemberExit{
			Gen: s.Gen, Class: registry.ClassMismatch,
			Why: causeOtherRow,
		}, e.At)}
	}}
	// reportCutOff charges no budget: the whole gang restarts from its last common step.
	reportCutOff = action{"report that it was cut off", func(s *State, e Event) []Effect {
		s.Result = registry.PhaseFailed
		x := registry.MemberExit{Gen: s.Gen, Class: registry.ClassRegistry, Why: causeCutOff}
		if s.Exit != nil {
			x.Code, x.Signal = s.Exit.Code, s.Exit.Signal
		}
		return []Effect{s.report(x, e.At)}
	}}
	reportTimeout = action{"report the time-out", func(s *State, e Event) []Effect {
		s.Result = registry.PhaseFailed
		x := registry.MemberExit{Gen: s.Gen, Class: registry.ClassTimeout, Final: true}
		x.Why = fmt.Sprintf(causeTimeout, s.Policy.Timeout)
		if s.Over == timerProcess {
			x.Why = fmt.Sprintf(causeDuration, s.Policy.Duration)
		}
		if s.Exit != nil {
			x.Code, x.Signal, x.LastOutput = s.Exit.Code, s.Exit.Signal, s.Exit.LastOutput
		}
		if s.Directive.Restarts(s.Gen) {
			x.Gen = s.Directive.Gen // of the one before it would count no more
		}
		return []Effect{s.report(x, e.At)}
	}}
	reportRestart = action{"report the restart", func(s *State, _ Event) []Effect {
		return []Effect{{Kind: DoRestarted, Attempt: s.Attempt + 1, Budget: s.Budget}}
	}}

	reportUp = action{"report that it is up", func(s *State, _ Event) []Effect {
		gen := s.Gen
		if s.Policy.Service {
			gen = s.Directive.Gen
		}
		return []Effect{{Kind: DoReportUp, Gen: gen, Attempt: s.Attempt, Budget: s.Budget}}
	}}

	// hold keeps the guard as it is: its container stays until the guard is replaced or closed.
	hold = action{"keep the container", func(s *State, e Event) []Effect {
		return s.hold(e.At, s.Policy.Hold)
	}}
	extend = action{"keep the container for as long from now on", func(s *State, e Event) []Effect {
		return s.hold(e.At, e.For)
	}}

	charge = action{"charge the budget", func(s *State, e Event) []Effect {
		s.Budget, _ = conductor.Charge(s.Budget, s.Policy.Rule, e.At, s.Step)
		return nil
	}}
	backOff = action{"wait a little", func(s *State, e Event) []Effect {
		s.Failures++
		return s.pause(s.Failures, e.Roll)
	}}
	backOffFree = action{"wait a little", func(s *State, e Event) []Effect {
		s.FreeRetries++
		return s.pause(notFirst, e.Roll) // whoever has the address needs time to leave
	}}
	rest = action{"wait a little", func(s *State, _ Event) []Effect {
		return s.pause(notFirst, evenRoll)
	}}
	armBarrier = action{"", func(s *State, _ Event) []Effect {
		return []Effect{s.armBarrier()}
	}}

	leave = action{"leave", func(s *State, _ Event) []Effect {
		e := Effect{Kind: DoLeave, Gen: s.Gen, Report: s.Pending}
		if class := s.leftClass(); s.Result == "" && (s.Exit != nil || class == registry.ClassLauncher) {
			e.Report = s.leaving(class)
		}
		return []Effect{e}
	}}

	forVerdict      = because(ForVerdict)
	forRebuild      = because(ForRebuild)
	stopForLauncher = because(byLauncher)
	forFlex         = because(ForFlex)
	forFence        = because(ForFence)
	forTimeout      = action{"", func(s *State, e Event) []Effect {
		s.Reason, s.Over = ForTimeout, timerRun
		if e.Kind == fired {
			s.Over = e.Timer.Kind
		}
		return nil
	}}
	armRun = action{"", func(s *State, _ Event) []Effect {
		if s.Policy.Timeout <= 0 || s.Policy.Service {
			return nil
		}
		e := s.arm(&s.timers.run, timerRun, s.Policy.Timeout)
		e.Attempt = 0 // it outlives attempts
		return []Effect{e}
	}}
	forAnother = because(ForAnother)

	interrupted = action{"", func(s *State, _ Event) []Effect {
		s.Code, s.Class, s.Cause = 128+s.Signal, registry.ClassLauncher, registry.SignalName(s.Signal)+" from outside"
		return nil
	}}
	shrunk = action{"", func(s *State, _ Event) []Effect {
		in := s.Instance
		n, instances := s.Directive.Counts[in.Component], "instances"
		if n == 1 {
			instances = "instance"
		}
		s.Code, s.Class, s.Cause = 0, registry.ClassFlex, fmt.Sprintf("flex: only %d %s of %s now", n, instances,
			in.Component)
		return nil
	}}
	madeRoom = action{"", func(s *State, _ Event) []Effect {
		s.Code, s.Class, s.Cause = exit.Held, registry.ClassHost, "the gang restarts: another agent stages again"
		return nil
	}}
	superseded = action{"", func(s *State, _ Event) []Effect {
		s.Code, s.Class = exit.Held, registry.ClassHost
		return nil
	}}
	timedOut = action{"", func(s *State, _ Event) []Effect {
		s.Code, s.Class = exit.Timeout, registry.ClassTimeout
		s.Cause = fmt.Sprintf("the barrier did not open within %s and nobody conducted", s.Policy.Barrier+backstop)
		return nil
	}}
)

func because(r StopReason) action {
	return action{"", func(s *State, _ Event) []Effect { s.Reason = r; return nil }}
}

func (s *State) arm(slot *int, kind timerKind, after time.Duration) Effect {
	s.timers.last++
	*slot = s.timers.last
	return Effect{Kind: DoArm, Attempt: s.Attempt, Timer: timer{kind, s.timers.last}, After: after}
}

func (s *State) hold(now time.Time, keep time.Duration) []Effect {
	s.HoldUntil = now.Add(keep)
	return []Effect{s.arm(&s.timers.hold, timerHold, keep)}
}

func (s *State) armGrace(now time.Time, grace time.Duration) Effect {
	s.Until = now.Add(grace)
	return s.arm(&s.timers.grace, timerGrace, grace)
}

func (s *State) armBarrier() Effect {
	return s.arm(&s.timers.barrier, timerBarrier, s.Policy.Barrier+backstop+s.Directive.Pause())
}

func (s *State) report(x registry.MemberExit, at time.Time) Effect {
	x.At = at
	if x.Gen == 0 {
		x.Gen = s.Directive.Gen // failed before the first acknowledgement: it counts for the generation that waits
	}
	s.ResultGen = x.Gen
	s.Pending = &registry.Report{Phase: s.Result, Exit: x, Attempt: s.Attempt, Budget: s.Budget}
	return Effect{Kind: DoReport, Gen: x.Gen, Attempt: s.Attempt, Report: s.Pending}
}

// StopGrace is how long the process has to end when it is asked to now.
func (s State) StopGrace() time.Duration {
	if s.CutOff {
		return min(s.stopGrace(), registry.FenceGrace)
	}
	return s.stopGrace()
}

func (s State) stopGrace() time.Duration {
	if s.Grace != nil {
		return *s.Grace
	}
	if g := s.Directive.StopGrace; s.Directive.Act == registry.ActStop && g > 0 {
		return min(s.Policy.Grace, time.Duration(g*float64(time.Second)))
	}
	return s.Policy.Grace
}

// leaving is the report of an instance that ends because it was told to. One that the launcher ends
// has failed, free of charge: whoever replaces it must not be charged for it.
func (s *State) leaving(class registry.Class) *registry.Report {
	r := &registry.Report{
		Phase: registry.PhaseLeft, Attempt: max(1, s.Attempt), Budget: s.Budget,
		Exit: registry.MemberExit{Gen: s.Gen, Class: class, Why: s.Cause},
	}
	if class == registry.ClassLauncher {
		r.Phase = registry.PhaseFailed
	}
	if s.Exit != nil {
		r.Exit.Code, r.Exit.Signal, r.Exit.Why, r.Exit.At = s.Exit.Code, s.Exit.Signal, s.Exit.beyond(), s.Exit.At
	}
	return r
}

// leftClass: a process that ended because it was told to says nothing about the app.
func (s *State) leftClass() registry.Class {
	if s.Class == registry.ClassFlex {
		return registry.ClassFlex
	}
	if s.Reason == byLauncher || s.Terms > 0 {
		return registry.ClassLauncher
	}
	return registry.ClassStopped
}

// notFirst is the place in a row of a restart that is not immediate; evenRoll is a roll without jitter.
const (
	notFirst = 2
	evenRoll = 0.5
)

// pause arms the timer before the n-th restart in a row, with jitter of a quarter either way from roll in [0,1).
func (s *State) pause(n int, roll float64) []Effect {
	s.Rested = false
	wait := time.Duration(float64(s.Policy.Rule.Backoff.Pause(n)) * (0.75 + roll/2))
	return []Effect{s.arm(&s.timers.backoff, timerBackoff, wait)}
}
