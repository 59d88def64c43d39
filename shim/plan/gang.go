package plan

import (
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry/conductor"
)

// Gang is what the conductor must know about the app. The caller adds the times: flags set them.
func Gang(app appdef.App, req Request) conductor.Facts {
	app = app.WithCounts(req.Instances)
	facts := conductor.Facts{
		App: req.AppID, Run: req.Run, Digest: req.Digest,
		Barrier: app.Settings.Barrier.Duration(), Retry: app.Settings.Retry,
		GangBudget: restartOf(app.Settings.GangBudget).Rule(), RetryTransient: app.Dialect == "pai",
		Total: conductor.TotalFacts(app.Settings.Total), SaveEvery: saveEvery(app.Settings.SaveEvery),
	}
	for _, c := range Order(&app) {
		one := componentFacts(c)
		one.InPlace = one.Waited && WhyFlexRestarts(&app, c) == ""
		one.Moves = one.InPlace && !knownBySetting(&app, c.Name)
		for _, r := range app.StartsAfter(c.Name) {
			one.After = append(one.After, conductor.Requirement{Component: r.Component, State: r.State})
		}
		facts.Components = append(facts.Components, one)
		grace := Seconds(graceOf(c, req.Allocation.KillWindow))
		facts.StopGrace = max(facts.StopGrace, grace)
	}
	return facts
}

// saveEvery is long enough to leave time for other work than saving.
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
		Budget: restartOf(c.Settings.Restart).Rule(), Grows: c.Limits.Autoscale > 0,
		Saves: len(c.Settings.Outputs.To) > 0 && c.Settings.Outputs.Strategy != appdef.StrategyStream,
		Ranks: ranksOf(c),
	}
}

// ranksOf: an evaluator trains nothing, so its checkpoints do not count.
func ranksOf(c *appdef.Component) string {
	if c.Settings.Role == appdef.RoleEvaluator && c.Settings.Checkpoint.Ranks == "" {
		return conductor.RanksSome
	}
	return c.Settings.Checkpoint.Ranks
}

// Seconds is a time of a plan as a duration.
func Seconds(s float64) time.Duration { return appdef.Seconds(s).Duration() }

func graceOf(c *appdef.Component, killWindow float64) float64 {
	switch grace := float64(c.Settings.Stop.Grace); {
	case grace > 0:
		return grace
	case killWindow <= 0:
		return mostGrace
	default:
		return min(max(killWindow-leavingTime, 0), mostGrace)
	}
}

// The default grace of a stop, in seconds: at most mostGrace, and early enough before the launcher's SIGKILL to kill,
// prove the end and leave.
const (
	mostGrace   = 30
	leavingTime = 2
)
