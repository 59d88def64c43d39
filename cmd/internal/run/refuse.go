package run

import (
	"slices"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/plan"
)

// refusePlan tells before anything is made what each agent would refuse: a run has them on its own host.
func refusePlan(app appdef.App, vars map[string]string, found hadoop.DefaultFS) error {
	var bad appdef.Problems
	for _, c := range app.Components {
		if c.Instances == 0 {
			continue
		}
		request := plan.Request{
			Component: c.Name, Digest: "-",
			Allocation: plan.Allocation{User: plan.AnyUser, Vars: vars}, Starts: true,
		}
		found.Into(&request)
		_, problems := plan.Build(app, request)
		for _, p := range problems.Errors() {
			if !slices.Contains(bad, p) {
				bad = append(bad, p)
			}
		}
	}
	return exit.OfProblems(bad)
}
