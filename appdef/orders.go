package appdef

import "slices"

// StartsAfter lists the requirements for the start of a component's instances: those of all its orders in the order of
// the definition, each component once. STARTED includes INSTALLED.
func (a App) StartsAfter(component string) []Requirement {
	var after []Requirement
	for _, order := range a.CommandOrders {
		if order.Component != component || order.Command != "START" {
			continue
		}
		for _, r := range order.Requires {
			i := slices.IndexFunc(after, func(have Requirement) bool { return have.Component == r.Component })
			switch {
			case i < 0:
				after = append(after, r)
			case r.State == "STARTED":
				after[i] = r
			}
		}
	}
	return after
}
