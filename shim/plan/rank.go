package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// Order is the app's components in rank order: by priority, then as the definition lists them;
// services last.
func Order(app *appdef.App) []*appdef.Component {
	order := make([]*appdef.Component, len(app.Components))
	for i := range app.Components {
		order[i] = &app.Components[i]
	}
	slices.SortStableFunc(order, func(a, b *appdef.Component) int {
		return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(a.Priority, b.Priority))
	})
	return order
}

// late is 1 for what comes after all ranks that are waited for.
func late(c *appdef.Component) int {
	if c.Settings.Role == appdef.RoleService {
		return 1
	}
	return 0
}

// Instances are all instances of the app in rank order: the instance of rank n is element n, and an
// agent without an index claims one in this order.
func Instances(app *appdef.App) []registry.Instance {
	var all []registry.Instance
	for _, c := range Order(app) {
		for i := range c.Instances {
			all = append(all, registry.Instance{Component: c.Name, Index: i})
		}
	}
	return all
}

// rankOf is the instance's rank and the number of instances that are waited for.
func rankOf(app *appdef.App, component string, index int) (rank, world int) {
	before := 0
	for _, c := range Order(app) {
		if c.Name == component {
			rank = before + index
		}
		before += c.Instances
		if late(c) == 0 {
			world += c.Instances
		}
	}
	return rank, world
}

// Gang is what the conductor must know of the app. Times are the caller's: flags set them.
func Gang(app appdef.App, req Request) conductor.Facts {
	app = app.WithCounts(req.Instances)
	facts := conductor.Facts{
		App: req.AppID, Run: req.Run, Digest: req.Digest,
		Barrier: app.Settings.Barrier.Duration(), Retry: app.Settings.Retry,
		GangBudget: budgetRule(app.Settings.GangBudget), RetryTransient: app.Dialect == "pai",
		Total: conductor.TotalFacts(app.Settings.Total), SaveEvery: saveEvery(app.Settings.SaveEvery),
	}
	for _, c := range Order(&app) {
		one := componentFacts(c)
		for _, r := range app.StartsAfter(c.Name) {
			one.After = append(one.After, conductor.Requirement{Component: r.Component, State: r.State})
		}
		facts.Components = append(facts.Components, one)
		grace := seconds(graceOf(c, req.Allocation.KillWindow))
		facts.StopGrace = max(facts.StopGrace, grace)
	}
	return facts
}

// saveEvery is never so short that saving is all that is done.
func saveEvery(s appdef.Seconds) time.Duration {
	if s <= 0 {
		return 0
	}
	return max(s.Duration(), time.Second)
}

func componentFacts(c *appdef.Component) conductor.ComponentFacts {
	role := c.Settings.Role
	ends := role == appdef.RoleChief || role == appdef.RoleWorker
	return conductor.ComponentFacts{
		Name: c.Name, Role: string(role), Count: c.Instances, Scope: string(c.Settings.Restart.Scope),
		Waited:    role != appdef.RoleService,
		Ends:      ends,
		Fails:     role != appdef.RoleService && role != appdef.RoleEvaluator,
		MinFailed: c.Settings.Complete.MinFailed, MinSucceeded: c.Settings.Complete.MinSucceeded,
		Budget: budgetRule(c.Settings.Restart), Grows: c.Limits.Autoscale > 0,
		Saves: len(c.Settings.Outputs.To) > 0 && c.Settings.Outputs.Strategy != appdef.StrategyStream,
		Ranks: ranksOf(c),
	}
}

// ranksOf: an evaluator trains nothing, so nobody waits for its checkpoints.
func ranksOf(c *appdef.Component) string {
	if c.Settings.Role == appdef.RoleEvaluator && c.Settings.Checkpoint.Ranks == "" {
		return conductor.RanksSome
	}
	return c.Settings.Checkpoint.Ranks
}

func budgetRule(r appdef.Restart) conductor.BudgetRule {
	rule := conductor.BudgetRule{
		Max: r.Budget, Window: r.Window.Duration(), RefillCheckpoint: r.Refill == "checkpoint",
	}
	if r.Scope == appdef.ScopeNever {
		rule.Max = 0
	}
	return rule
}

func seconds(s float64) time.Duration { return appdef.Seconds(s).Duration() }
