package shim

import (
	"cmp"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/openapp"
)

// identity is which agent this is, by its options, then by its launcher.
type identity struct {
	appID, run string
	instance   *registry.Instance
	component  string // of an index to be claimed; "": any
	rank       int    // of Slurm; -1: none
	found      launcher.Found
}

// identity completes a name with the launcher's facts.
func (n Name) identity(found launcher.Found, app *openapp.App) (identity, error) {
	id := identity{appID: n.AppID, run: n.Run, found: found, component: n.Component, rank: found.Rank}
	if id.appID == "" {
		id.appID = found.AppID
	}
	if id.appID == "" {
		return id, exit.Usagef("agent: --app-id is missing: the name of the gang, the same for all its agents")
	}
	if id.run == "" {
		id.run = found.RunID
	}
	if id.run == "" {
		id.run = "1"
	}
	if err := cmp.Or(appdef.CheckName("agent: --app-id", id.appID),
		appdef.CheckName("agent: --run", id.run)); err != nil {
		return id, exit.With(exit.Usage, err)
	}
	index := n.Index
	if id.component == "" {
		id.component = found.Component
	}
	if index < 0 {
		index = found.Index
	}
	if id.component != "" && app.Component(id.component) == nil {
		return id, exit.Usagef("agent: no component %q, want one of %s", id.component,
			strings.Join(app.ComponentNames(), ", "))
	}
	if id.component != "" && index >= 0 {
		id.instance = &registry.Instance{Component: id.component, Index: index}
	}
	if id.component == "" && index >= 0 {
		return id, exit.Usagef("agent: --index %d without --component", index)
	}
	return id, nil
}
