package plan

import (
	"slices"

	"github.com/muster-agent/muster/appdef"
)

// AnyUser stands for the user of the app while none is known.
const AnyUser = "USER"

// Check plans the first instance of each component and returns problems that only planning finds. vars are a client's
// names.
func Check(app appdef.App, vars map[string]string) appdef.Problems { return check(app, vars, false) }

// StartWarnings are the warnings of Check for an app that is to start, without those of its definition (App.Warnings).
func StartWarnings(app appdef.App, vars map[string]string) appdef.Problems {
	return OwnWarnings(app, check(app, vars, true).Warnings()).Sort()
}

// OwnWarnings are the warnings of a plan without those of its definition, which are told when that is read.
func OwnWarnings(app appdef.App, warnings appdef.Problems) appdef.Problems {
	return slices.DeleteFunc(slices.Clone(warnings), func(p appdef.Problem) bool {
		return slices.Contains(app.Warnings, p)
	})
}

func check(app appdef.App, vars map[string]string, starts bool) appdef.Problems {
	var found appdef.Problems
	for _, c := range app.Components {
		if c.Instances == 0 {
			continue
		}
		p, problems := Build(app, Request{
			Component: c.Name, Digest: "-", Allocation: Allocation{User: AnyUser, Vars: vars}, DefaultFS: DefaultStore,
			Starts: starts,
		})
		found = append(append(found, problems...), p.Warnings...)
	}
	return found
}
