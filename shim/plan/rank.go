package plan

import (
	"cmp"
	"slices"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
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

// late is 1 for components after all awaited ranks.
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

// rankOf is the instance's rank and the number of awaited instances.
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

func trains(c *appdef.Component) bool {
	return c.Settings.Role == appdef.RoleChief || c.Settings.Role == appdef.RoleWorker
}
