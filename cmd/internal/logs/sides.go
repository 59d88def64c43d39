package logs

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/process"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// CheckSide refuses the name of a side process that the target does not have. One that has written nothing yet may be
// asked for, and so may any while the names are not known.
func (l Reader) CheckSide(ctx context.Context, t apps.Target, side string) error {
	asked, names := t.App, l.names()
	if t.Instance != nil {
		name := t.Instance.String()
		if l.Elsewhere[name] == nil {
			if _, err := l.dir(name); err != nil {
				return err
			}
		}
		asked, names = asked+"/"+name, []string{name}
	}
	app := l.definition(ctx)
	has, sure := []string{}, len(names) > 0
	for _, name := range names {
		own, all := l.sidesOf(app, name)
		has, sure = append(has, own...), sure && all
	}
	if !sure || slices.Contains(has, side) {
		return nil
	}
	slices.Sort(has)
	return exit.Usagef("%s has no side process %s; it has: %s", asked, side, wording.OrNone(slices.Compact(has)))
}

// definition is the app's; nil: it is not known. What a page tells of it has no side processes.
func (l Reader) definition(ctx context.Context) *appdef.App {
	f, k := l.Facts, l.Lookup
	if k.Page != nil {
		return nil
	}
	if f.Registry == nil {
		k.Warn = io.Discard // the logs of this host need no registry
		f, _ = k.App(ctx, f.ID)
	}
	if f.Registry == nil {
		return nil
	}
	app := apps.Definition(f.Registry.App)
	if len(app.Components) == 0 {
		return nil
	}
	return &app
}

// sidesOf are the side processes of an instance that are known by the definition, its agent or its log folder, and
// whether it can have no others.
func (l Reader) sidesOf(app *appdef.App, instance string) (has []string, all bool) {
	f := l.Facts
	st, lives := f.States[instance]
	if there, ok := f.Peers[instance]; ok {
		st, lives = there, true
	}
	for _, s := range slices.Concat(st.Sides, f.Lasts[instance].Sides) {
		has = append(has, s.Name)
	}
	if _, elsewhere := l.Elsewhere[instance]; !elsewhere {
		has = append(has, loggedSides(f.LogDirs()[instance])...)
	}
	in, err := registry.ParseInstance(instance)
	if app != nil && err == nil && slices.Contains(app.ComponentNames(), in.Component) {
		return append(has, plan.SideNames(app, in.Component, in.Index)...), true
	}
	// side processes start with the process, all of them at once
	return has, len(has) > 0 || !lives || machine.Phase(st.Phase) == machine.Running
}

// loggedSides are the side processes that have a log in a folder.
func loggedSides(dir string) []string {
	var names []string
	entries, _ := os.ReadDir(dir) // it may be gone
	for _, e := range entries {
		rest, side := strings.CutPrefix(e.Name(), status.SidePrefix)
		for _, stream := range []string{"stdout", "stderr"} {
			name, log, _ := strings.Cut(rest, "."+stream+".log")
			if side && name != rest && (log == "" || log == ".1") && e.Name() == process.SideLogName(name, stream)+log {
				names = append(names, name)
			}
		}
	}
	return names
}
