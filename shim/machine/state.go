package machine

import (
	"fmt"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// State is everything that the machine knows. It is a value: Step returns the next one. Its groups are embedded, so
// that a rule names a fact by its last word.
type State struct {
	Phase     Phase
	Instance  registry.Instance
	Policy    Policy
	Run       string             // of the directive that the index was claimed under
	Directive registry.Directive // newest received
	Step      int64              // of the newest checkpoint
	Conducts  bool               // this agent is the conductor

	generations
	attempt
	result
	account
	stopping
	terms
	final
	contact
	timers timers
}

// generations are the gang's, as far as this agent has followed them.
type generations struct {
	Gen    int // acknowledged: nothing older than this runs here
	Acking int // whose acknowledgement is on its way
	Proc   int // of the live process; 0: none
}

// attempt is the process's current start.
type attempt struct {
	Attempt int       // starts of the process, over all agents of this instance
	Bound   bool      // the ports are held
	Moved   bool      // the ports are others than those that the gang knows
	Begun   time.Time // when the process was last started
	Up      bool      // the process serves
}

// result is how the process ended.
type result struct {
	Exit      *Exit          // how the last process ended
	Result    registry.Phase // ended or failed, when the process is over for good in this generation
	ResultGen int            // generation that Result belongs to
	// Pending is the report of Result until the registry has taken it; nil: it has, or there is none. A leave carries
	// it.
	Pending *registry.Report
	// HoldUntil is when the container of the failed process is given up; zero: it is not kept.
	HoldUntil time.Time
}

// account is what restarts have cost.
type account struct {
	Budget      registry.Budget
	Failures    int  // in a row, each within a window of its start
	FreeRetries int  // starts spent on "address in use"
	Rested      bool // the backoff is over
}

// stopping is the current stop of the process.
type stopping struct {
	Reason     StopReason
	Until      time.Time // when its grace ends
	Over       timerKind // the time limit that was exceeded, if that is the reason
	TimeIsOver bool      // muster.timeout has passed
}

// terms are the requests from outside to end.
type terms struct {
	Terms  int            // signals received
	Signal int            // the first of them
	Grace  *time.Duration // asked for with one of them
}

// final is how the agent ends where no verdict decides it.
type final struct {
	Code  int // exit code; -1: none
	Class registry.Class
	Cause string
}

// contact is this agent's contact with the registry.
type contact struct {
	AwaySince time.Time // registry unreachable since; zero: reachable
	CutOff    bool      // the partition guard has fallen: no process may run
	CutSince  time.Time // when it fell
	LostData  string    // what the registry lost; empty: nothing
}

// timers are the numbers of the timers that count; an older one that fires is ignored.
type timers struct {
	last    int // given to any timer
	grace   int
	backoff int
	barrier int
	run     int
	process int
	hold    int
}

// StopReason is why a running process is stopped.
type StopReason string

// The reasons.
const (
	ForRebuild StopReason = "rebuild"  // a newer generation forms
	ForVerdict StopReason = "verdict"  // the run is over
	byLauncher StopReason = "launcher" // TERM from outside
	ForAnother StopReason = "another"  // the index has another holder
	ForTimeout StopReason = "timeout"  // muster.timeout or muster.duration
	ForFlex    StopReason = "flex"     // the index counts no more
	ForFence   StopReason = "fence"    // cut off from the registry, and the peers are not
)

// New is the state of an agent that has done nothing yet.
func New() State { return State{Phase: Starting, final: final{Code: -1}} }

// Why says in words how a process ended.
func (e *Exit) Why() string {
	switch {
	case e == nil:
		return causeNeverRan
	case e.OOM && e.Message != "":
		return causeMemory + ": " + e.Message
	case e.OOM:
		return causeMemory
	case e.Signal != 0 && e.Message != "":
		return fmt.Sprintf(causeKilled, registry.SignalName(e.Signal)) + ": " + e.Message
	case e.Signal != 0:
		return fmt.Sprintf(causeKilled, registry.SignalName(e.Signal))
	case e.Code != nil && e.Message != "":
		return fmt.Sprintf(causeExited, *e.Code) + ": " + e.Message
	case e.Code != nil:
		return fmt.Sprintf(causeExited, *e.Code)
	case e.Unseen && e.Message != "":
		return e.Message
	default:
		return fmt.Sprintf(causeNotStarted, e.Message)
	}
}

// beyond says what code and signal of an exit do not.
func (e *Exit) beyond() string {
	if e != nil && (e.Code != nil || e.Signal != 0) {
		return e.Message
	}
	return e.Why()
}

// class is what the evidence says of the last exit.
func (s State) class() registry.Class {
	switch {
	case s.Exit == nil:
		return registry.ClassMuster
	case s.Exit.OOM:
		return registry.ClassOOM
	case s.Exit.Class != "":
		return s.Exit.Class
	}
	return registry.ClassApp
}

// order compares directives: a higher generation wins, within one wait < run < stop.
func order(d registry.Directive) int {
	act := map[registry.Act]int{registry.ActWait: 1, registry.ActRun: 2, registry.ActStop: 3}[d.Act]
	return d.Gen*4 + act
}

// absorb takes in what an event says, before any rule looks at it.
func (s State) absorb(e Event) State {
	switch e.Kind {
	case Directed:
		s = s.direct(e.Directive)
	case Joined:
		s.Run = e.Directive.Run
		s = s.direct(e.Directive)
		s.Instance, s.Attempt, s.Budget = e.Joined.Instance, e.Joined.Attempt, e.Joined.Budget
		s.Policy.Service = e.Joined.Service
		if e.Joined.Spent {
			s.Result, s.ResultGen = registry.PhaseFailed, e.Directive.Gen
		}
	case Staged:
		s.Policy, s.Bound = *e.Policy, true
	case StageFailed:
		var x Exit
		if e.Exit != nil {
			x = *e.Exit
		}
		x.Message, x.Class, x.Final, x.At = e.Cause, e.Class, true, e.At
		s.Exit = &x
	case Refused, Denied:
		s.Code, s.Class, s.Cause = e.Code, e.Class, e.Cause
	case Acked:
		s.Gen, s.Result, s.Pending = max(s.Gen, e.Gen), "", nil
		if s.Acking <= e.Gen {
			s.Acking = 0
		}
	case Overtaken:
		s.Acking = 0
	case Up:
		s.Up = s.Phase == Running
	case Gone:
		s = s.gone(e)
	case Rebound:
		s.Bound, s.Moved = true, s.Moved || !e.On
	case Progressed:
		if e.Step > s.Step {
			s.Failures = 0
		}
		s.Step = max(s.Step, e.Step)
	case Term:
		s.Terms++
		if s.Signal == 0 {
			s.Signal = e.Signal
		}
		if e.Grace != nil {
			s.Grace = e.Grace
		}
	case fired:
		s.Rested = s.Rested || e.Timer == timer{timerBackoff, s.timers.backoff}
		s.TimeIsOver = s.TimeIsOver || e.Timer == timer{timerRun, s.timers.run}
		s = s.release(e.Timer == timer{timerHold, s.timers.hold})
	case Release:
		s = s.release(true)
	case Away:
		if s.AwaySince.IsZero() {
			s.AwaySince = e.At
		}
	case Back:
		s.AwaySince, s.LostData = time.Time{}, ""
	case DataLost:
		s.LostData = e.Cause
	case CutOff:
		s = s.cut(e.At)
	case Contact:
		s.CutOff, s.CutSince = false, time.Time{}
	case Conducting:
		s.Conducts = e.On
	case Taken:
		s.Cause = e.Cause
	case Reported:
		if s.Pending != nil && s.Pending.Exit.Gen == e.Gen {
			s.Pending = nil
		}
	case boot, Held, Extend, Published, Sealed, Mismatch, Started, Left:
	}
	return s
}

func (s State) release(over bool) State {
	if over {
		s.HoldUntil = time.Time{}
	}
	return s
}

func (s State) gone(e Event) State {
	s.Exit, s.Proc, s.Up, s.Bound, s.Moved = e.Exit, 0, false, false, false
	if e.Exit.CutOff {
		s = s.cut(e.At)
	}
	lasted := e.At.Sub(s.Begun)
	if s.Policy.Rule.EndsRow(lasted) {
		s.Failures = 0
	}
	if lasted > s.Policy.Rule.Backoff.Max && !e.Exit.Free { // a long healthy life
		s.FreeRetries = 0
	}
	return s
}

func (s State) cut(at time.Time) State {
	s.HoldUntil = time.Time{}
	if !s.CutOff {
		s.CutOff, s.CutSince = true, at
	}
	return s
}

func (s State) direct(d *registry.Directive) State {
	if d != nil && (order(*d) >= order(s.Directive) || s.verdictOf(*d)) {
		if d.Retries.Gen > s.Directive.Retries.Gen { // the whole gang begins again, its accounts too
			s.Budget, s.Failures, s.FreeRetries = s.Budget.Fresh(), 0, 0
		}
		s.Directive = *d
	}
	if s.anotherRun() {
		s.Code, s.Class, s.Cause = exit.Held, registry.ClassHost, "the app is in run "+s.Directive.Run+" now"
	}
	return s
}

// verdictOf tells whether a directive ends this run: it does so however far this agent had come in it, for a registry
// that was restored may have forgotten that.
func (s State) verdictOf(d registry.Directive) bool {
	return d.Verdict != nil && d.Run == s.Directive.Run && s.Directive.Verdict == nil
}

func (s State) anotherRun() bool { return s.Run != "" && s.Directive.Run != s.Run }
