package plan

import (
	"slices"

	"github.com/muster-agent/muster/appdef"
)

// AnyUser stands for the user of the app while none is known.
const AnyUser = "USER"

// Check plans the first instance of each component and returns problems that only planning finds. vars are a client's
// names.
func Check(app appdef.App, vars map[string]string) appdef.Problems {
	return check(app, vars, Request{})
}

// StartWarnings are the warnings of Check for an app that is to start, without those of its definition (App.Warnings).
// hostRoot says that its processes have the ids of agents that are the host's root.
func StartWarnings(app appdef.App, vars map[string]string, host HostFacts) appdef.Problems {
	request := Request{Starts: true, HostFacts: host}
	return OwnWarnings(app, check(app, vars, request).Warnings()).Sort()
}

// OwnWarnings are the warnings of a plan without those of its definition, which are told when that is read.
func OwnWarnings(app appdef.App, warnings appdef.Problems) appdef.Problems {
	return slices.DeleteFunc(slices.Clone(warnings), func(p appdef.Problem) bool {
		return slices.Contains(app.Warnings, p)
	})
}

func check(app appdef.App, vars map[string]string, request Request) appdef.Problems {
	request.Digest, request.DefaultFS = "-", DefaultStore
	request.Allocation = Allocation{User: AnyUser, Vars: vars}
	var found appdef.Problems
	for _, c := range app.Components {
		if c.Instances == 0 {
			continue
		}
		request.Component = c.Name
		p, problems := Build(app, request)
		found = append(append(found, problems...), p.Warnings...)
	}
	return found
}
