package machine

import (
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// EventKind names a fact that the agent heard.
type EventKind string

// The events.
const (
	Boot        EventKind = "boot"
	Held        EventKind = "held"         // another agent holds the index; this one stands by
	Joined      EventKind = "joined"       // the index is ours
	Refused     EventKind = "refused"      // no place in this gang: Code and Cause say why
	Staged      EventKind = "staged"       // files, ports and the guard are ready
	StageFailed EventKind = "stage-failed" // Class and Cause say why
	Directed    EventKind = "directive"
	Acked       EventKind = "acked"     // the registry took the acknowledgement of Gen
	Overtaken   EventKind = "overtaken" // it did not: a newer directive is there
	Published   EventKind = "published" // a service's exports are in the registry
	Sealed      EventKind = "sealed"    // the roster was read and our row is ours
	Mismatch    EventKind = "mismatch"  // the roster's row is another's
	Started     EventKind = "started"   // the process runs
	Up          EventKind = "up"        // it serves: those that are ordered after it may start
	Gone        EventKind = "gone"      // proved: no process of ours is left; Exit says how it ended
	Rebound     EventKind = "rebound"   // the ports are held again
	Reported    EventKind = "reported"  // the registry knows how the process ended
	Left        EventKind = "left"      // the index was given back
	Fired       EventKind = "timer"
	Term        EventKind = "term" // TERM or INT from outside, or an API stop
	Taken       EventKind = "superseded"
	Denied      EventKind = "denied"     // the registry will not have it, now or later: Code and Cause
	Progressed  EventKind = "checkpoint" // a newer whole checkpoint exists
	Away        EventKind = "unreachable"
	Back        EventKind = "reachable"
	CutOff      EventKind = "cut-off" // the fence falls: nothing may run here until Contact
	Contact     EventKind = "contact" // the index is known to be ours again; told as long as the fence stands
	DataLost    EventKind = "data-lost"
	Conducting  EventKind = "conducting"
)

// Event is one fact. Attempt binds it to a start of the process (0: to none); an answer to an
// older attempt is ignored.
type Event struct {
	Kind    EventKind
	Attempt int
	At      time.Time // of hearing; the machine has no clock of its own

	Directive *registry.Directive // Directed, Joined
	Joined    *Join               // Joined
	Policy    *Policy             // Staged
	Gen       int                 // Acked, Overtaken, Sealed, Mismatch
	Exit      *Exit               // Gone; StageFailed, of the command that failed
	Timer     Timer               // Fired
	Step      int64               // Progressed
	Signal    int                 // Term
	Grace     *time.Duration      // Term: instead of the usual one; nil: the usual
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
	Follows    bool
	Rule       conductor.BudgetRule
	BackoffMin time.Duration
	BackoffMax time.Duration
	Grace      time.Duration
	Timeout    time.Duration // of the whole run, from the staging on; 0: none (muster.timeout)
	Duration   time.Duration // of one running process; 0: none (muster.duration)
	Barrier    time.Duration
}

// Exit is how a process ended; it stays whole until the verdict.
type Exit struct {
	Code    *int      `json:"code"`   // the process's own; null if it was killed or never ran
	Signal  int       `json:"signal"` // 0: none
	OOM     bool      `json:"oom"`
	Peak    int64     `json:"peak"`  // bytes; 0: unknown
	Limit   int64     `json:"limit"` // bytes; 0: none
	At      time.Time `json:"at"`
	Message string    `json:"message,omitempty"`

	Class  registry.Class `json:"-"` // what the evidence says; empty: app-error
	Unseen bool           `json:"-"` // it ran, and nobody knows its status: Message says what is known
	Final  bool           `json:"-"` // trying again cannot help (no such command)
	Free   bool           `json:"-"` // address in use right after the start: a retry costs nothing
	// CutOff: it was ended, or not started, because too long nothing was heard of the registry.
	CutOff bool `json:"-"`
	// Passing: what the image failed for may be gone another time, as in registry.MemberExit.
	Passing bool `json:"-"`
}

// OK tells whether the process ended with 0.
func (e *Exit) OK() bool { return e != nil && e.Code != nil && *e.Code == 0 && e.Signal == 0 }

// Timer names a timer and the arming that it belongs to: an older one that fires late is deaf.
type Timer struct {
	Kind TimerKind
	Seq  int
}

// TimerKind is what a timer is for.
type TimerKind string

// The timers.
const (
	GraceOver   TimerKind = "grace"
	BackoffOver TimerKind = "backoff"
	BarrierOver TimerKind = "barrier"  // the agent's own back-stop, later than the conductor's
	RunOver     TimerKind = "timeout"  // muster.timeout
	ProcessOver TimerKind = "duration" // muster.duration
)
