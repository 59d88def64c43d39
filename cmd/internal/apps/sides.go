package apps

import (
	"context"
	"io"
	"slices"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
)

// Defined is the app's definition with its side processes; nil: it is not known. What a page tells of it has none.
func (k Lookup) Defined(ctx context.Context, f Facts) *appdef.App {
	if k.Page != nil {
		return nil
	}
	if f.Registry == nil {
		k.Warn = io.Discard // what this host knows needs no registry
		f, _ = k.App(ctx, f.ID)
	}
	if f.Registry == nil {
		return nil
	}
	app := Definition(f.Registry.App)
	if len(app.Components) == 0 {
		return nil
	}
	return &app
}

// Sides are the side processes of an instance that its definition, nil if it is not known, or its agent names, and
// whether it can have no others.
func (f *Facts) Sides(app *appdef.App, instance string) (has []string, all bool) {
	st, lives := f.States[instance]
	if there, ok := f.Peers[instance]; ok {
		st, lives = there, true
	}
	for _, s := range slices.Concat(st.Sides, f.Lasts[instance].Sides) {
		has = append(has, s.Name)
	}
	in, err := registry.ParseInstance(instance)
	if app != nil && err == nil && slices.Contains(app.ComponentNames(), in.Component) {
		return append(has, plan.SideNames(app, in.Component, in.Index)...), true
	}
	// side processes start with the process, all of them at once
	return has, len(has) > 0 || !lives || machine.Phase(st.Phase) == machine.Running
}
