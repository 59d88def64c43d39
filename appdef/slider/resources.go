package slider

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sections merges the sections into the App: each component's own values over the global ones.
func (l *loading) sections() {
	l.app.Config, l.app.Resources = l.merge("config", l.appConfig.global), l.merge("resources", l.resources.global)
	for i := range l.app.Components {
		c := &l.app.Components[i]
		index := strconv.Itoa(i)
		c.Config = over(l.app.Config, l.merge("config", l.appConfig.components[c.Name], "components", index))
		c.Resources = over(l.app.Resources, l.merge("resources", l.resources.components[c.Name], "components", index))
	}
}

// merge takes the texts of a section and their places. Counts become the App's Instances, not resources.
func (l *loading) merge(part string, section appdef.Section, level ...string) map[string]string {
	texts := make(map[string]string, len(section))
	for key, v := range section {
		if part == "resources" && key == instancesKey {
			continue
		}
		texts[key] = v.Text
		l.put(v.Place, slices.Concat(level, []string{part, key})...)
	}
	return texts
}

func over(global, own map[string]string) map[string]string {
	merged := maps.Clone(global)
	maps.Copy(merged, own)
	return merged
}

// grants reads what resources sets for each component: priority, instances and limits.
func (l *loading) grants() {
	for i := range l.app.Components {
		c := &l.app.Components[i]
		index := strconv.Itoa(i)
		c.Limits.MemoryMB, c.Limits.VCores = appdef.DefaultMemoryMB, appdef.DefaultVCores
		if _, ok := l.resources.components[c.Name]; !ok {
			if c.Category != "CLIENT" && c.Name != "" && l.resources.root.line > 0 {
				l.resources.root.doc.add(l.resources.root.at("components").Problem("no entry for the component "+c.Name,
					"one with "+priorityKey+" and "+instancesKey, ""))
			}
			continue
		}
		r := grant{loading: l, component: c.Name}
		c.Priority = r.whole(priorityKey, 1, true)
		c.Instances = r.whole(instancesKey, 0, true)
		c.Limits.MemoryMB = r.wholeOrMax(memoryKey, appdef.DefaultMemoryMB)
		c.Limits.VCores = r.wholeOrMax(vcoresKey, appdef.DefaultVCores)
		c.Limits.Placement = r.whole(placementKey, 0, false)
		c.Limits.NodeLabel = r.text(labelKey)
		c.Limits.LogInclude, c.Limits.LogExclude = r.text(includeKey), r.text(excludeKey)
		for part, key := range map[string]string{"priority": priorityKey, "instances": instancesKey} {
			if v, ok := r.find(key); ok {
				l.put(v.Place, "components", index, part)
			}
		}
	}
	l.shadowed()
}

// shadowed judges the global values that every component overrides, and reports one of the command line that has no
// effect.
func (l *loading) shadowed() {
	nobody := grant{loading: l}
	nobody.wholeOrMax(memoryKey, appdef.DefaultMemoryMB)
	nobody.wholeOrMax(vcoresKey, appdef.DefaultVCores)
	nobody.whole(placementKey, 0, false)
	for key, v := range l.resources.global {
		delete(l.app.Origins, "."+key)
		own := func(c appdef.Component) bool { _, ok := l.resources.components[c.Name][key]; return ok }
		all := !slices.ContainsFunc(l.app.Components, func(c appdef.Component) bool { return !own(c) })
		if v.File == appdef.SetFlag && all {
			l.found = append(l.found, v.Warning(appdef.Quote(v.Text)+" for all components", "COMPONENT:"+key+"=VALUE",
				"every component has its own value, which wins"))
		}
	}
}

// grant reads the values of one component.
type grant struct {
	*loading
	component string
}

// find is the component's own value, else the global one.
func (r grant) find(key string) (appdef.Value, bool) {
	v, ok := r.resources.components[r.component][key]
	if !ok {
		v, ok = r.resources.global[key]
	}
	if ok {
		r.app.Origins[r.component+"."+key] = v.String()
	}
	return v, ok
}

func (r grant) text(key string) string {
	v, _ := r.find(key)
	return v.Text
}

// whole is a number of at least least; 0 if there is none. A wrong number is reported.
func (r grant) whole(key string, least int, mandatory bool) int {
	v, ok := r.find(key)
	if !ok {
		if mandatory {
			r.resources.root.doc.add(r.resources.places[r.component].Problem("no "+key,
				"a whole number, "+strconv.Itoa(least)+" or more", ""))
		}
		return 0
	}
	n, err := appdef.ParseInt(v.Text)
	if err != nil || n < least {
		r.found = append(r.found, v.Problem(appdef.Quote(v.Text), "a whole number, "+strconv.Itoa(least)+" or more",
			""))
		return 0
	}
	return n
}

func (r grant) wholeOrMax(key string, fallback int) int {
	v, ok := r.find(key)
	if !ok {
		return fallback
	}
	if strings.EqualFold(v.Text, "max") {
		return appdef.Max
	}
	n, err := appdef.ParseInt(v.Text)
	if err != nil || n < 1 {
		hint := ""
		if key == memoryKey && strings.TrimRight(strings.ToLower(v.Text), "gkmbi") != v.Text {
			hint = "the unit is MB"
		}
		r.found = append(r.found, v.Problem(appdef.Quote(v.Text), "a whole number, 1 or more, or max", hint))
		return fallback
	}
	return n
}

// failureBudget turns Slider's failure threshold and window into keys of muster, unless the definition has such keys.
// More failures in the window than the threshold end the app; 0 or less means no limit.
func (l *loading) failureBudget(src appdef.Sources) {
	for _, c := range l.app.Components {
		const key = "muster.restart.budget"
		v, ok := grant{l, c.Name}.find(thresholdKey)
		if !ok || written(src, c.Name, key) {
			continue
		}
		n, err := appdef.ParseInt(v.Text)
		if err != nil {
			l.found = append(l.found, v.Problem(appdef.Quote(v.Text), "a whole number", "0 or less is no limit"))
			continue
		}
		if n <= 0 {
			n = -1
		}
		v.Text = strconv.Itoa(n)
		put(src.ComponentResources, c.Name, key, v)
	}
	window, ok := l.failureWindow()
	for _, c := range l.app.Components {
		const key = "muster.restart.window"
		if ok && !written(src, c.Name, key) {
			put(src.ComponentResources, c.Name, key, window)
		}
	}
}

func written(src appdef.Sources, component, key string) bool {
	for _, section := range []appdef.Section{
		src.ComponentConfig[component], src.ComponentResources[component],
		src.Config, src.Resources,
	} {
		if _, ok := section[key]; ok {
			return true
		}
	}
	return false
}

func put(sections map[string]appdef.Section, component, key string, v appdef.Value) {
	if sections[component] == nil {
		sections[component] = appdef.Section{}
	}
	sections[component][key] = v
}

// windowParts are the ends of the keys of the window of failures, with their length and the most that one may say.
var windowParts = []struct {
	name             string
	unit, mostNumber int
}{
	{"days", 86400, 10_000}, {"hours", 3600, 10_000}, {"minutes", 60, 10_000}, {"seconds", 1, 1_000_000},
}

// failureWindow adds up the global window's days, hours, minutes and seconds.
func (l *loading) failureWindow() (appdef.Value, bool) {
	for _, c := range l.app.Components {
		for _, part := range windowParts {
			if v, ok := l.resources.components[c.Name][windowKey+part.name]; ok {
				l.found = append(l.found, v.Warning("a window of failures in a component", "it in global",
					"as in Slider it is one for the whole app: here it has no effect"))
			}
		}
	}
	var window appdef.Value
	seconds, set := 0, false
	for _, part := range windowParts {
		v, ok := l.resources.global[windowKey+part.name]
		if !ok {
			continue
		}
		n, err := appdef.ParseInt(v.Text)
		if err != nil || n < 0 || n > part.mostNumber {
			l.found = append(l.found, v.Problem(appdef.Quote(v.Text),
				"a whole number, 0 to "+strconv.Itoa(part.mostNumber), ""))
			continue
		}
		seconds += n * part.unit
		if !set {
			window.Place, set = v.Place, true
		}
	}
	window.Text = strconv.Itoa(seconds)
	return window, set
}
