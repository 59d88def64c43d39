package plan

import (
	"slices"

	"github.com/muster-agent/muster/appdef"
)

// WhyFlexRestarts is the reason for which a flex of this component restarts the whole gang: something is laid out for
// all members, and those that run would go on with what they were told. "": its instances come and go while the others
// run.
func WhyFlexRestarts(app *appdef.App, c *appdef.Component) string {
	s := &c.Settings
	switch {
	case s.Role == appdef.RoleService:
		return ""
	case app.Dialect == "pai" || app.Dialect == "hbox":
		return "each process of a job of " + app.Dialect + " is told who the others are"
	case len(s.Inputs.From) > 0:
		return "its instances share the files of their inputs out among themselves"
	case inCluster(app.Settings.Framework, s.Role):
		return "each process of " + app.Settings.Framework + " is told who the others are"
	case s.Restart.Scope == appdef.ScopeNever:
		return "muster.restart is never: no instance starts beside others that run"
	case s.Restart.Scope != appdef.ScopeInstance:
		return "muster.restart is " + string(s.Restart.Scope) + ": its processes belong together"
	}
	return ""
}

// inCluster tells whether the framework's processes are told of those of this role. An evaluator reads the cluster's
// description and is not in it, but for TonY, which knows tasks alone.
func inCluster(framework string, role appdef.Role) bool {
	return framework != "none" && (role != appdef.RoleEvaluator || framework == "tony")
}

// knownBySetting tells whether a setting of another process names the hosts or the ports of a component: of one that
// may be there only after a flex, too, and of the component itself if it may have several instances.
func knownBySetting(app *appdef.App, component string) bool {
	return slices.ContainsFunc(app.Components, func(c appdef.Component) bool {
		return (c.Name != component || c.MaxInstances != 1) && len(app.PeerKeys(c.Name, component)) > 0
	})
}
