package conductor

import (
	"time"

	"github.com/muster-agent/muster/registry"
)

// Facts are what the conductor must know of an App; shim/plan makes them (plan.Gang).
type Facts struct {
	App        string
	Run        string
	Digest     string
	Components []ComponentFacts // in rank order: priority, metainfo order; services last
	Barrier    time.Duration    // longest wait of one generation
	Times      registry.Times
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
	// Ranks is how its instances' checkpoints belong together: RanksAuto (also when empty), RanksAll, RanksSome,
	// RanksEach.
	Ranks string
	// After is what must hold before an instance starts, merged over all orders that name the component.
	After []Requirement
}

// count is how many instances of component i the directive asks for.
func (f Facts) count(d registry.Directive, i int) int {
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

// Newcomer describes an agent that joins.
type Newcomer struct {
	App      string
	Run      string
	NewRun   bool // --run was given: a finished run of another id may be followed by a new one
	Digest   string
	Record   registry.AppRecord // what is founded if there is no app yet
	Instance *registry.Instance // nil: claim one
	// Claimable are the instances that may be claimed, in rank order, when Instance is nil.
	Claimable []registry.Instance
	Member    registry.Member // facts of this agent; Inc is set
	Launcher  bool            // started by a launcher: standby behind a live holder, else refused
	Facts     Facts
}

// How the checkpoints of a component's ranks belong together (ComponentFacts.Ranks).
const (
	ranksAuto = "auto" // where several have stored their own, each must have a step; one alone saves for all
	RanksAll  = "all"  // each must have a step
	RanksSome = "some" // those who have never stored one do not count
	RanksEach = "each" // each goes on from its own newest
)

// Resumes tells that a rank goes on from a step that is the whole gang's.
func (f ComponentFacts) Resumes() bool {
	return f.Waited && f.Scope != registry.ScopeInstance && f.Ranks != RanksEach
}

// Requirement is what a component waits for before it starts (Slider's commandOrders): that every
// instance of Component has come as far as State.
type Requirement struct {
	Component string
	State     string // OrderStarted, OrderInstalled
}

// The states that may be required. Whoever is ready is installed, so among those who are waited for at
// the barrier OrderInstalled always holds.
const (
	OrderStarted   = "STARTED"   // its process serves, or has ended with 0
	OrderInstalled = "INSTALLED" // it has published its exports
)

// What Facts.Retry may be below zero.
const (
	RetryForever = -1 // failures whose cause is not known are retried without end
	RetryAlways  = -2 // the gang is formed anew after every end, a success as well
)

// Instances lists every instance that the directive counts, in rank order, services last.
func (f Facts) Instances(d registry.Directive) []registry.Instance {
	var all []registry.Instance
	for _, waited := range []bool{true, false} {
		for i, c := range f.Components {
			if c.Waited != waited {
				continue
			}
			for k := range f.count(d, i) {
				all = append(all, registry.Instance{Component: c.Name, Index: k})
			}
		}
	}
	return all
}

// Rank is the position of an instance in the whole gang, -1 if the directive does not count it.
func (f Facts) Rank(d registry.Directive, in registry.Instance) int {
	base := 0
	for _, waited := range []bool{true, false} {
		for i, c := range f.Components {
			n := f.count(d, i)
			switch {
			case c.Waited != waited:
			case c.Name != in.Component:
				base += n
			case in.Index < 0 || in.Index >= n:
				return -1
			default:
				return base + in.Index
			}
		}
	}
	return -1
}

// World is how many instances are waited for: WORLD_SIZE.
func (f Facts) World(d registry.Directive) int {
	n := 0
	for i, c := range f.Components {
		if c.Waited {
			n += f.count(d, i)
		}
	}
	return n
}
