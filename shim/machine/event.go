package machine

import (
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// eventKind names a fact that the agent heard.
type eventKind string

// The events.
const (
	boot        eventKind = "boot"
	Held        eventKind = "held"         // another agent holds the index; this one stands by
	Joined      eventKind = "joined"       // the index is ours
	Refused     eventKind = "refused"      // no place in this gang: Code and Cause say why
	Staged      eventKind = "staged"       // files, ports and the guard are ready
	StageFailed eventKind = "stage-failed" // Class and Cause say why
	Directed    eventKind = "directive"
	Acked       eventKind = "acked"     // the registry took the acknowledgement of Gen
	Overtaken   eventKind = "overtaken" // it did not: a newer directive is there
	Published   eventKind = "published" // a service's exports are in the registry
	Sealed      eventKind = "sealed"    // the roster was read and our row is ours
	Mismatch    eventKind = "mismatch"  // the roster's row is another's
	Started     eventKind = "started"   // the process runs
	Up          eventKind = "up"        // it serves: those that are ordered after it may start
	Gone        eventKind = "gone"      // proved: no process of ours is left; Exit says how it ended
	Rebound     eventKind = "rebound"   // the ports are held again
	Reported    eventKind = "reported"  // the registry knows how the process ended
	Left        eventKind = "left"      // the index was given back
	fired       eventKind = "timer"
	Term        eventKind = "term" // TERM or INT from outside, or an API stop
	Taken       eventKind = "superseded"
	Denied      eventKind = "denied"     // the registry will not have it, now or later: Code and Cause
	Progressed  eventKind = "checkpoint" // a newer complete checkpoint exists
	Away        eventKind = "unreachable"
	Back        eventKind = "reachable"
	CutOff      eventKind = "cut-off" // the fence falls: nothing may run here until Contact
	Contact     eventKind = "contact" // the index is known to be ours again; sent while cut off or fenced
	DataLost    eventKind = "data-lost"
	Extend      eventKind = "extend"  // a person keeps the container of the failed process for For from now on
	Release     eventKind = "release" // it is needed no more
	Conducting  eventKind = "conducting"
)

// Event is one fact. Attempt binds it to a start of the process (0: to none); an answer to an
// older attempt is ignored.
type Event struct {
	Kind    eventKind
	Attempt int
	At      time.Time // of hearing; the machine has no clock of its own

	Directive *registry.Directive // Directed, Joined
	Joined    *Join               // Joined
	Policy    *Policy             // Staged
	Gen       int                 // Acked, Overtaken, Sealed, Mismatch
	Exit      *Exit               // Gone; StageFailed, of the command that failed
	Timer     timer               // fired
	Step      int64               // Progressed
	Signal    int                 // Term
	Grace     *time.Duration      // Term: instead of the usual one; nil: the usual
	For       time.Duration       // Extend
	Code      int                 // Refused, Denied
	Class     registry.Class      // StageFailed
	Cause     string
	On        bool    // Conducting
	Roll      float64 // Gone: a random number in [0,1) for the jitter
}

// Join is what a claim found.
type Join struct {
	Instance registry.Instance
	Attempt  int             // starts of the process so far, by earlier agents
	Budget   registry.Budget // as the record has it
	Service  bool
	Spent    bool // the record says failed for good: the last agent's death was one too many
}

// Policy is the plan's word on failure and stop, as the machine needs it.
type Policy struct {
	Scope   string // instance, gang, never
	Service bool
	// Ordered: others start when this component has started, so that it reports it.
	Ordered bool
	// Follows: this component starts when others have. Only a service needs to know; the others hear it
	// from the directive.
	Follows  bool
	Rule     conductor.BudgetRule
	Grace    time.Duration
	Timeout  time.Duration // of the whole run, from the staging on; 0: none (muster.timeout)
	Duration time.Duration // of one running process; 0: none (muster.duration)
	Barrier  time.Duration
	Hold     time.Duration // how long the container of a failed process is kept; 0: not at all (muster.hold)
	HoldEnds bool          // the failure counts at once, and what is kept is the last container (muster.hold.gang)
}

// Exit is how a process ended; it is kept until the verdict.
type Exit struct {
	Code    *int      `json:"code"`   // the process's own; null if it was killed or never ran
	Signal  int       `json:"signal"` // 0: none
	OOM     bool      `json:"oom"`
	Peak    int64     `json:"peak"`  // bytes; 0: unknown
	Limit   int64     `json:"limit"` // bytes; 0: none
	At      time.Time `json:"at"`
	Message string    `json:"message,omitempty"`
	// LastOutput is the end of a failed process's output, as in registry.MemberExit.
	LastOutput string `json:"last_output,omitempty"`

	Class  registry.Class `json:"-"` // what the evidence says; empty: app-error
	Unseen bool           `json:"-"` // it ran, and nobody knows its status: Message says what is known
	Final  bool           `json:"-"` // trying again cannot help (no such command)
	Free   bool           `json:"-"` // address in use right after the start: a retry costs nothing
	// CutOff: it was ended, or not started, because the registry was unreachable for too long.
	CutOff bool `json:"-"`
	// Passing: what the image failed for may be gone another time, as in registry.MemberExit.
	Passing bool `json:"-"`
}

// OK tells whether the process ended with 0.
func (e *Exit) OK() bool { return e != nil && e.Code != nil && *e.Code == 0 && e.Signal == 0 }

// timer names a timer and its arming: when an older arming fires late, no rule reacts to it.
type timer struct {
	Kind timerKind
	Seq  int
}

// timerKind is what a timer is for.
type timerKind string

// The timers.
const (
	timerGrace   timerKind = "grace"
	timerBackoff timerKind = "backoff"
	timerBarrier timerKind = "barrier"  // the agent's own back-stop, later than the conductor's
	timerRun     timerKind = "timeout"  // muster.timeout
	timerProcess timerKind = "duration" // muster.duration
	timerHold    timerKind = "hold"     // muster.hold
)
