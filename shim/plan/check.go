package plan

import "github.com/muster-agent/muster/appdef"

// AnyUser stands for the user of the app while none is known.
const AnyUser = "USER"

// Check plans the first instance of each component and returns problems that only planning finds. vars are a client's
// names.
func Check(app appdef.App, vars map[string]string) appdef.Problems {
	var found appdef.Problems
	for _, c := range app.Components {
		if c.Instances == 0 {
			continue
		}
		p, problems := Build(app, Request{
			Component: c.Name, Digest: "-", Allocation: Allocation{User: AnyUser, Vars: vars}, DefaultFS: DefaultStore,
		})
		found = append(append(found, problems...), p.Warnings...)
	}
	return found
}
