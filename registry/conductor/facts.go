package conductor

import (
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// Facts are what the conductor must know about an App; shim/plan makes them (plan.Gang).
type Facts struct {
	App        string
	Run        string
	Digest     string
	Components []ComponentFacts // in rank order: by priority, then in metainfo order; services last
	Barrier    time.Duration    // the longest wait of one generation
	Times      registry.Times
	// GangBudget is the restart budget of the gang scope, counted for the app.
	GangBudget BudgetRule
	// Retry is how many full restarts follow where the run would end; RetryForever, RetryAlways.
	Retry int
	// RetryTransient restarts the gang, uncounted, after every failure that the app did not cause (PAI's rule).
	RetryTransient bool
	Total          TotalFacts
	StopGrace      time.Duration
	SaveEvery      time.Duration // how often all members save their outputs; 0: only when asked to
}

// TotalFacts count all instances except services and evaluators. Zero values mean never.
type TotalFacts struct {
	MinSucceeded int     // the app succeeds when this many instances ended with 0
	MinFailed    int     // the app fails when this many instances failed for good
	FailedShare  float64 // MinFailed as a share of all, rounded up, at least one
}

// ComponentFacts are what decisions need about one component.
type ComponentFacts struct {
	Name         string
	Role         string // ps, worker, chief, evaluator, service
	Count        int    // as defined; the counts of a directive win
	Scope        string // instance, gang, never
	Waited       bool   // part of the barrier and of the roster's ranks: all but services
	Ends         bool   // the success of its instances ends the job: chief and worker
	Fails        bool   // its final failures count: all but services and evaluators
	MinFailed    *int   // nil: never
	MinSucceeded *int   // nil: all of the component; else the app succeeds with this many
	Budget       BudgetRule
	Grows        bool // it gets more memory after it ran out of memory
	// InPlace: a flex starts and stops the difference while the others run: no framework tells processes of each other.
	InPlace bool
	// Moves: and a replacement may be at another address while the others run: no setting names its hosts or ports.
	Moves bool
	Saves bool // its instances have outputs that can be saved during the run
	// Ranks says how the checkpoints of its instances belong together: RanksAll, RanksSome, RanksEach, or "auto" (also
	// when empty): if several ranks have stored checkpoints, each must have the step; a single one saves for all.
	Ranks string
	// After lists what must hold before an instance starts, merged over all orders that name the component.
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
	RefillCheckpoint bool          // a newer checkpoint step resets the budget
	Backoff          Backoff       // the pauses between them
}

// Newcomer describes an agent that joins.
type Newcomer struct {
	App    string
	Run    string
	NewRun bool // --run was given: after a finished run, a run with another id may begin
	// Digest is the definition's in the form of the oldest version that this build speaks, Digests in the others' by
	// version.
	Digest   string
	Digests  map[int]string
	Speaks   registry.Proto     // the versions that this build speaks
	Record   registry.AppRecord // what this agent founds if there is no app yet
	Instance *registry.Instance // nil: claim one
	// Claimable are the instances that may be claimed, in rank order; used if Instance is nil.
	Claimable []registry.Instance
	Member    registry.Member // facts of this agent; Inc is set
	// a launcher started it: it stands by behind a live holder; without a launcher it is refused
	Launcher bool
	Facts    Facts
}

// digestIn is the definition's digest in the form of a run: that of its oldest version, which all its agents can take.
func (n Newcomer) digestIn(run registry.Proto) string {
	if d, ok := n.Digests[run.OrFirst().Min]; ok {
		return d
	}
	return n.Digest
}

// How the checkpoints of a component's ranks belong together (ComponentFacts.Ranks).
const (
	RanksAll  = "all"  // each rank must have the step
	RanksSome = "some" // ranks that have never stored a step do not count
	RanksEach = "each" // each rank resumes from its own newest step
)

// FlexRestarts tells whether a change between these counts of all components restarts the gang in a new generation.
func (f Facts) FlexRestarts(have, want map[string]int) bool {
	return slices.ContainsFunc(f.Components, func(c ComponentFacts) bool {
		return c.Waited && !c.InPlace && have[c.Name] != want[c.Name]
	})
}

// Resumes tells whether a rank resumes from the step of the whole gang.
func (f ComponentFacts) Resumes() bool {
	return f.Waited && f.Scope != registry.ScopeInstance && f.Ranks != RanksEach
}

// Requirement is what a component waits for before it starts (Slider's commandOrders): every instance of Component has
// reached State.
type Requirement struct {
	Component string
	State     string // OrderStarted, OrderInstalled
}

// The states that may be required. A ready member is installed, so OrderInstalled always holds for members of the
// barrier.
const (
	OrderStarted   = "STARTED"   // its process serves, or ended with 0
	OrderInstalled = "INSTALLED" // it has published its exports
)

// Values of Facts.Retry below zero.
const (
	RetryForever = -1 // failures of unknown cause are retried without limit
	RetryAlways  = -2 // the gang restarts after every end, also a success
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

// World is how many instances the barrier waits for: WORLD_SIZE.
func (f Facts) World(d registry.Directive) int {
	n := 0
	for i, c := range f.Components {
		if c.Waited {
			n += f.count(d, i)
		}
	}
	return n
}
