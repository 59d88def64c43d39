package pai

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// extras adds what the fields do not express: it reads the job back to find out.
func (w *writing) extras() {
	for pointer, value := range w.app.Kept {
		if name, ok := strings.CutPrefix(pointer, keptPrefix+"/extras/"); ok {
			w.file.Extras[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)] = value
		}
	}
	if again := w.again(); again.Settings.PAI.Version != w.version() {
		w.file.Extras[versionKey] = w.version()
	}
	w.settings()
	again := w.again()
	for _, key := range ourKeys(w.app.Config, w.app.Resources) {
		text, _ := w.of(key)
		text = w.filled("", text)
		if key == commandKey && !w.native {
			continue // each role has it
		}
		if back, ok := valueOf(again.Config, again.Resources, key); !ok || back != text {
			w.extra("", "", key, text)
		}
	}
	again = w.again()
	for i, c := range w.components {
		name := w.file.TaskRoles[i].Name
		for _, key := range ourKeys(c.Config, c.Resources) {
			text, _ := valueOf(c.Config, c.Resources, key)
			if global, ok := w.of(key); ok && global == text {
				continue
			}
			role := again.Component(name)
			if role == nil {
				continue
			}
			text = w.filled(c.Name, text)
			if back, ok := valueOf(role.Config, role.Resources, key); !ok || back != text {
				w.extra(c.Name, name, key, text)
			}
		}
	}
}

// settings adds the defaults of another dialect that differ from a job file's.
func (w *writing) settings() {
	if w.native {
		return
	}
	if framework := w.app.Settings.Framework; framework != "none" {
		w.extra("", "", "muster.framework", framework)
	}
	for i, c := range w.components {
		name := w.file.TaskRoles[i].Name
		if role := c.Settings.Role; role != appdef.RoleWorker {
			w.extra(c.Name, name, "muster.role", string(role))
		}
		if c.Limits.Image == "" && w.file.Image != appdef.HostRoot {
			w.extra(c.Name, name, imageKey, appdef.HostRoot)
		}
		if scope := c.Settings.Restart.Scope; scope != appdef.ScopeNever {
			w.extra(c.Name, name, "muster.restart", string(scope))
		}
	}
}

// extra adds a key, of a component that is called role in the file, or of all.
func (w *writing) extra(component, role, key, text string) {
	name, told := key, key+"="+text
	if component != "" {
		name, told = role+":"+key, component+": "+told
	}
	w.file.Extras[name] = text
	if text == "null" && (key == minFailedKey || key == minSuccessKey) {
		w.file.Extras[name] = nil
	}
	if !w.native {
		w.cannot(told)
	}
}

// ourKeys are muster's own keys of two sections, sorted, without those that Load sets by itself.
func ourKeys(config, resources map[string]string) []string {
	keys := map[string]bool{}
	for _, section := range []map[string]string{config, resources} {
		for key := range section {
			keys[key] = strings.HasPrefix(key, "muster.") && key != dialectKey
		}
	}
	maps.DeleteFunc(keys, func(_ string, ours bool) bool { return !ours })
	return slices.Sorted(maps.Keys(keys))
}

// again is the App that Load makes of the file so far.
func (w *writing) again() appdef.App {
	app, _ := Load(w.encode(), Options{})
	return app
}

// others names what neither a field nor a key of muster's can express.
func (w *writing) others() {
	a := w.app
	known := func(key string) bool {
		return strings.HasPrefix(key, "muster.") || slices.Contains([]string{
			"yarn.memory", "yarn.vcores",
			"yarn.role.priority", gpuKey,
		}, key) ||
			w.native && strings.HasPrefix(key, portPrefix)
	}
	for _, section := range []map[string]string{a.Config, a.Resources} {
		for key, text := range section {
			if !known(key) {
				w.cannot(key + "=" + text)
			}
		}
	}
	for pointer := range a.Kept {
		if !strings.HasPrefix(pointer, keptPrefix) {
			w.cannot(pointer + ": it is kept and not acted upon")
		}
	}
	for i := range a.Components {
		w.othersOf(&a.Components[i], known)
	}
	for _, group := range a.ExportGroups {
		for _, export := range group.Exports {
			if !w.address(appdef.ExportRef{Group: group.Name, Name: export.Name}) {
				w.cannot("export " + group.Name + "-" + export.Name + "=" + export.Value)
			}
		}
	}
	for _, order := range a.CommandOrders {
		for _, r := range order.Requires {
			w.cannot(order.Component + "-" + order.Command + " after " + r.Component + "-" + r.State)
		}
	}
	for _, p := range a.Packages {
		w.cannot("package " + p.Name)
	}
	for _, file := range a.ConfigFiles {
		if file.Dictionary != portDict {
			w.cannot("the dictionary " + file.Dictionary)
		}
	}
	for dict := range a.Defaults {
		w.cannot("the defaults of the dictionary " + dict)
	}
	for _, addon := range a.Addons {
		w.cannot("add-on " + addon.Name)
	}
	for what, text := range map[string]string{"version": a.Release, "comment": a.Comment} {
		if text != "" {
			w.cannot("the " + what + " " + appdef.Quote(text))
		}
	}
}

func (w *writing) othersOf(c *appdef.Component, known func(string) bool) {
	for _, sections := range [][2]map[string]string{{c.Config, w.app.Config}, {c.Resources, w.app.Resources}} {
		for key, text := range sections[0] {
			if global, ok := sections[1][key]; !known(key) && (!ok || global != text) {
				w.cannot(c.Name + ": " + key + "=" + text)
			}
		}
	}
	for _, export := range c.ComponentExports {
		w.cannot(c.Name + ": export " + export.Name + "=" + export.Value)
	}
	if c.CommandScript != nil {
		w.cannot(c.Name + ": commandScript " + c.CommandScript.Script)
	}
	for _, command := range c.Commands {
		if command.Name != "START" || command.Type == "PYTHON" {
			w.cannot(c.Name + ": " + command.Name + " " + command.Exec)
		}
	}
	if c.MinInstances > 0 || c.MaxInstances >= 0 {
		w.cannot(c.Name + ": the least and the most instances")
	}
}

// address tells whether an export is the one that PAI gives every task: its host and its first port of http.
func (w *writing) address(ref appdef.ExportRef) bool {
	return slices.ContainsFunc(w.app.Components, func(c appdef.Component) bool {
		return c.Settings.ClusterExport == ref
	})
}
