package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// The side processes of frameworks, by name. They run beside the first chief or worker: ps-lite's nodes, rabit's
// workers and Gloo's ranks meet there.
const (
	SideScheduler  = appdef.SideScheduler
	SideTracker    = appdef.SideTracker
	SideRendezvous = appdef.SideRendezvous
)

// beside is one side process of one instance.
type beside struct {
	appdef.Side
	framework bool // the framework needs it
}

// frameworkSide is the side process that the app's framework needs; empty: none. Without servers MXNet has no cluster,
// and a single process of XGBoost or Horovod meets nobody.
func frameworkSide(app *appdef.App) string {
	train, serve := 0, 0
	for _, c := range app.Components {
		switch c.Settings.Role {
		case appdef.RoleChief, appdef.RoleWorker:
			train += c.Instances * max(1, c.Settings.Processes)
		case appdef.RolePS:
			serve += c.Instances
		case appdef.RoleEvaluator, appdef.RoleService:
		}
	}
	name := appdef.FrameworkSide(app.Settings.Framework)
	if name == SideScheduler && serve == 0 || name != SideScheduler && train < 2 {
		return ""
	}
	return name
}

// firstWorker tells whether the instance is the first chief, or without chiefs the first worker.
func firstWorker(app *appdef.App, component string, index int) bool {
	for _, role := range []appdef.Role{appdef.RoleChief, appdef.RoleWorker} {
		for _, c := range Order(app) {
			if c.Instances > 0 && c.Settings.Role == role {
				return c.Name == component && index == 0
			}
		}
	}
	return false
}

// sidesOf are the side processes of an instance, by name: those of the definition and that of the framework. The latter
// runs only beside the first chief or worker, with the definition's command for it or ours.
func sidesOf(app *appdef.App, component string, index int) []beside {
	c, wanted := app.Component(component), frameworkSide(app)
	var all []beside
	for _, s := range c.Settings.Sides {
		switch {
		case s.Name == appdef.FrameworkSide(app.Settings.Framework):
			if firstWorker(app, component, index) {
				s.Port, wanted = true, ""
				all = append(all, beside{Side: s, framework: true})
			}
		case s.Index == index || s.Index == appdef.EveryIndex:
			all = append(all, beside{Side: s})
		}
	}
	if wanted != "" && firstWorker(app, component, index) {
		all = append(all, beside{Side: appdef.Side{Name: wanted, Restart: true, Port: true}, framework: true})
		slices.SortFunc(all, func(a, b beside) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}

// SideNames are the names of the side processes of an instance.
func SideNames(app *appdef.App, component string, index int) []string {
	var names []string
	for _, s := range sidesOf(app, component, index) {
		names = append(names, s.Name)
	}
	return names
}

// sidePorts are the ports of an instance's side processes, except those that the configuration requests itself as
// `site.side.NAME`.
func sidePorts(app *appdef.App, component string, index int) []Port {
	var ports []Port
	c := app.Component(component)
	for _, s := range sidesOf(app, component, index) {
		if s.Port && !asksFor(app, component, appdef.SidePort(s.Name)) {
			ports = append(ports, Port{
				Name:    appdef.SidePort(s.Name),
				Allowed: allowedPorts(app, c),
			})
		}
		if s.Key {
			ports = append(ports, Port{Name: appdef.SideInnerPort(s.Name), Allowed: allowedPorts(app, c)})
		}
	}
	return ports
}

func asksFor(app *appdef.App, component, key string) bool {
	return slices.ContainsFunc(app.PortNeeds(component), func(n appdef.PortNeed) bool { return n.Key == key })
}

// ofOtherSide tells whether a template names the port of a side process of this component that runs beside another
// instance: that instance publishes it.
func ofOtherSide(app *appdef.App, c *appdef.Component, index int, template string) bool {
	own := sidesOf(app, c.Name, index)
	return slices.ContainsFunc(appdef.Placeholders(template), func(placeholder string) bool {
		name, ok := appdef.CutSidePort(strings.TrimPrefix(placeholder, "site."))
		if _, configured := c.Config[placeholder]; !ok || configured || slices.ContainsFunc(own, func(s beside) bool {
			return s.Name == name
		}) {
			return false
		}
		return name == appdef.FrameworkSide(app.Settings.Framework) ||
			slices.ContainsFunc(c.Settings.Sides, func(s appdef.Side) bool {
				return s.Name == name && s.Port
			})
	})
}
