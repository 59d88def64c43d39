package run

import (
	"slices"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/plan"
)

// refusePlan tells before anything is made what each agent would refuse: a run has them on its own host, whose facts
// these are.
func refusePlan(app appdef.App, vars map[string]string, found hadoop.DefaultFS, host plan.HostFacts) error {
	var bad appdef.Problems
	for _, c := range app.Components {
		if c.Instances == 0 || inImage(c) && !hasData(app, c) { // what an image has is not known yet
			continue
		}
		request := ownRequest(c.Name, vars, host)
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

// ownRequest asks for the plan of any instance of a component on this run's own host.
func ownRequest(component string, vars map[string]string, host plan.HostFacts) plan.Request {
	return plan.Request{
		Component: component, Digest: "-", Allocation: plan.Allocation{User: plan.AnyUser, Vars: vars}, Starts: true,
		HostFacts: host,
	}
}

func inImage(c appdef.Component) bool {
	return c.Limits.Image != "" && c.Limits.Image != appdef.HostRoot
}

func hasData(app appdef.App, c appdef.Component) bool {
	s := c.Settings
	return len(s.Inputs.From)+len(s.Outputs.To)+len(s.Files)+len(s.Archives) > 0 || app.Settings.PAI.Version != ""
}
