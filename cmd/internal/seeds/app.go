package seeds

import (
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/mask"
	"github.com/muster-agent/muster/shim/status"
)

// App is one app as it is now.
type App struct {
	facts apps.Facts
	view  view.App
	def   appdef.App // without components where no registry has it
	ids   map[string]string

	secrets *mask.Set
}

// ShowKeys puts the keys of pages into their URLs, for who may act on the app.
func (a *App) ShowKeys() { a.view.ShowKeys(a.facts) }

// Of is the app of what was found out.
func Of(f apps.Facts) App {
	a := App{facts: f, view: view.Of(f), ids: map[string]string{}, secrets: &mask.Set{}}
	if f.Registry == nil {
		return a
	}
	counts := f.Registry.App.Counts
	if d := f.Registry.Directive.Counts; d != nil {
		counts = d
	}
	a.def = apps.Definition(f.Registry.App).WithCounts(counts)
	for _, named := range []map[string]string{a.def.Config, a.def.Resources} {
		a.secrets.AddNamed(named)
	}
	for _, c := range a.def.Components {
		a.secrets.AddNamed(c.Config)
		a.secrets.AddNamed(c.Resources)
		a.secrets.AddNamed(c.Settings.Env)
	}
	for _, m := range f.Registry.Members {
		a.ids[m.Instance.String()] = m.ContainerID
	}
	return a
}

// Hide takes the values of settings and variables whose names say that they are secret out of a text: whoever may look
// at an app is not who runs in it.
func (a App) Hide(text string) string { return a.secrets.Hide(text) }

// Defined tells whether the app's definition is known. Without it there is nothing to say of what was asked for.
func (a App) Defined() bool { return len(a.def.Components) > 0 }

// container is the launcher's word for an instance's container, or else the instance's own name.
func (a App) container(row status.Instance) string {
	if id := a.ids[row.Instance]; id != "" {
		return id
	}
	return row.Instance
}

// Instance is the instance in a container, by either name.
func (a App) Instance(container string) (row status.Instance, ok bool) {
	for _, row := range a.view.Instances {
		if container == row.Instance || container == a.ids[row.Instance] {
			return row, true
		}
	}
	return status.Instance{}, false
}

// Saves tells whether a component has outputs that can be saved.
func (a App) Saves() bool {
	return slices.ContainsFunc(a.def.Components, func(c appdef.Component) bool {
		return len(c.Settings.Outputs.To) > 0 && c.Settings.Outputs.Strategy != appdef.StrategyStream
	})
}

// user is who has started the run, as far as it is known here.
func (a App) user() string {
	if st := a.facts.Registry; st != nil && st.App.User != "" {
		return st.App.User
	}
	return a.facts.Owner
}

// end of an instance: how its process ended for good.
type end int

const (
	goesOn end = iota
	succeeded
	failed
	stopped
)

// endOf tells how an instance ended. One that was told to end after the verdict has not failed.
func (a App) endOf(row status.Instance) end {
	verdict := a.view.Verdict
	switch {
	case row.Phase != "done" && row.Phase != string(registry.PhaseLost) && row.Phase != "finishing" && verdict == nil:
		return goesOn
	case row.ExitInfo == nil && verdict == nil:
		return failed // it is lost
	case row.Exit != nil && *row.Exit == 0:
		return succeeded
	case row.ExitInfo == nil, verdict != nil && row.ExitInfo.At.After(verdict.At) && verdict.First != row.Instance:
		return stopped
	}
	return failed
}

// javaDate prints a time as Java's Date does; "" for no time.
func javaDate(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("Mon Jan 02 15:04:05 MST 2006")
}

// webURL is the first export of an instance that is a web page, those of a board first.
func webURL(row status.Instance) string {
	found := ""
	for name, value := range row.Exports {
		if !strings.HasPrefix(value, "http://") && !strings.HasPrefix(value, "https://") {
			continue
		}
		isBoard := strings.Contains(strings.ToLower(name), "board")
		if isBoard {
			return value
		}
		if row.Role == string(appdef.RoleService) && (found == "" || value < found) {
			found = value
		}
	}
	return found
}
