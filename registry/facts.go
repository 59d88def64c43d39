package registry

import "time"

// Facts are what the conductor must know of an App; shim/plan makes them (plan.Gang).
type Facts struct {
	App        string
	Run        string
	Digest     string
	Components []ComponentFacts // in rank order: priority, metainfo order; services last
	Barrier    time.Duration    // longest wait of one generation
	Times      Times
	// GangBudget is the restart budget of the gang scope, counted for the app.
	GangBudget BudgetRule
	// Retry is how often the whole gang may be formed anew where the run would end; RetryForever, RetryAlways.
	Retry int
	// RetryTransient forms it anew, uncounted, after every failure that the app cannot help (PAI's rule).
	RetryTransient bool
	Total          TotalFacts
	StopGrace      time.Duration
	SaveEvery      time.Duration // how often all save their outputs in between; 0: when they are asked to
}

// TotalFacts count over all instances but those of services and evaluators. Zero values mean never.
type TotalFacts struct {
	MinSucceeded int     // so many that ended with 0 end the app with success
	MinFailed    int     // so many that failed for good fail it
	FailedShare  float64 // the same as a share of all, rounded up, one at least
}

// ComponentFacts are one component's part in the decisions.
type ComponentFacts struct {
	Name         string
	Role         string // ps, worker, chief, evaluator, service
	Count        int    // as defined; a directive's counts win
	Scope        string // instance, gang, never
	Waited       bool   // in the barrier and the roster's ranks: all but services
	Ends         bool   // its instances' success ends the job: chief and worker
	Fails        bool   // its permanent failure counts: all but services and evaluators
	MinFailed    *int   // nil: never
	MinSucceeded *int   // nil: all of the component; else the app has succeeded when so many have
	Budget       BudgetRule
	Grows        bool // it has more memory after an end for want of it
	Saves        bool // its instances have outputs that can be saved in between
	// Ranks is how its instances' checkpoints belong together: RanksAuto (also when empty), RanksAll, RanksSome, RanksEach.
	Ranks string
	// After is what must hold before an instance starts, merged over all orders that name the component.
	After []Requirement
}

// The restart scopes.
const (
	ScopeInstance = "instance" // in place, the others go on
	ScopeGang     = "gang"     // all restart together
	ScopeNever    = "never"    // an end is the end
)

// count is how many instances of component i the directive asks for.
func (f Facts) count(d Directive, i int) int {
	if n, ok := d.Counts[f.Components[i].Name]; ok {
		return n
	}
	return f.Components[i].Count
}

func (f Facts) counts() map[string]int {
	m := make(map[string]int, len(f.Components))
	for _, c := range f.Components {
		m[c.Name] = c.Count
	}
	return m
}

func (f Facts) component(name string) (ComponentFacts, bool) {
	for _, c := range f.Components {
		if c.Name == name {
			return c, true
		}
	}
	return ComponentFacts{}, false
}

// BudgetRule bounds restarts.
type BudgetRule struct {
	Max              int           // restarts within Window; -1: no limit
	Window           time.Duration // 0: for ever
	RefillCheckpoint bool          // a newer checkpoint step empties the account
}

// Times are the protocol's times (protocol 7).
type Times struct {
	TTL      time.Duration // of both sessions, 10 s
	Renew    time.Duration // 3 s
	Request  time.Duration // time-out of a renewal, 2 s
	LostMass time.Duration // 10 min: a member without proof of death is lost after this
	Lost     time.Duration // 60 s
	Barrier  time.Duration // 30 min
	Wait     time.Duration // of a blocking read, 60 s
}

// Me is what an agent says of itself when it joins.
type Me struct {
	App      string
	Run      string
	NewRun   bool // --run was given: a finished run of another id may be followed by a new one
	Digest   string
	Record   AppRecord // what is founded if there is no app yet
	Instance *Instance // nil: claim one
	// Claimable are the instances that may be claimed, in rank order, when Instance is nil.
	Claimable []Instance
	Member    Member // facts of this agent; Inc is set
	Launcher  bool   // started by a launcher: standby behind a live holder, else refused
	Facts     Facts
}

// Event is what the registry tells an agent of its gang while it is a member.
type Event interface{ event() }

// The events.
type (
	// DirectiveSeen comes at each change of the directive that is not older than the last.
	DirectiveSeen struct{ Directive Directive }
	// StandingBy says who holds the index that this agent waits for.
	StandingBy struct {
		Instance Instance
		Holder   Member
	}
	// Unreachable says since when no renewal was answered; Reachable ends it.
	Unreachable struct {
		Since time.Time
		Err   error
	}
	// Reachable says that the registry answers again.
	Reachable struct{}
	// SupersededBy says that another incarnation holds the index now: kill, then exit 75.
	SupersededBy struct{ Inc string }
	// DataLost says that the registry answers but no longer knows this app.
	DataLost struct{ Why string }
	// Conducting tells that this agent conducts (or does no longer).
	Conducting struct{ On bool }
	// Missing tells whom this agent, as the conductor, waits for since when and until when; those that it
	// named before and does not now are back, replaced, or lost.
	Missing struct{ Losses []Loss }
)

func (DirectiveSeen) event() {}
func (StandingBy) event()    {}
func (Unreachable) event()   {}
func (Reachable) event()     {}
func (SupersededBy) event()  {}
func (DataLost) event()      {}
func (Conducting) event()    {}
func (Missing) event()       {}

// Report says how a process ended (T10).
type Report struct {
	Phase   Phase // ended or failed
	Exit    MemberExit
	Attempt int
	Budget  Budget
}
