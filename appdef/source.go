package appdef

import (
	"maps"
	"slices"
	"strings"
)

// Value is one value of a definition and its place. Scalars of JSON are kept as their text.
type Value struct {
	Text string
	Null bool // JSON null
	Place
}

// Section is one level of one file: key → value.
type Section map[string]Value

// Sources are the four levels at which a `muster.*` key may stand. The order of precedence is appConfig component,
// resources component, appConfig global, resources global.
type Sources struct {
	Config, Resources                   Section
	ComponentConfig, ComponentResources map[string]Section // by component
}

// levels lists the sections that apply to a component, or to the app if it is empty: the first with a key wins. The two
// of one level have the same rank.
func (s Sources) levels(component string) [][2]Section {
	if component == "" {
		return [][2]Section{{s.Config, s.Resources}}
	}
	return [][2]Section{{s.ComponentConfig[component], s.ComponentResources[component]}, {s.Config, s.Resources}}
}

// find looks a key up for a component (empty: for the app).
func (s Sources) find(component, key string) (Value, bool) {
	for _, level := range s.levels(component) {
		for _, section := range level {
			if v, ok := section[key]; ok {
				return v, true
			}
		}
	}
	return Value{}, false
}

// family lists the keys that start with prefix at any level that holds for a component, sorted.
func (s Sources) family(component, prefix string) []string {
	found := map[string]bool{}
	for _, level := range s.levels(component) {
		for _, section := range level {
			for key := range section {
				if strings.HasPrefix(key, prefix) {
					found[key] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// ours tells which keys are muster's own.
func ours(key string) bool { return strings.HasPrefix(key, "muster.") || key == gpuKey }

// twice reports keys of muster that stand in both files at one level.
func (s Sources) twice() Problems {
	var found Problems
	check := func(config, resources Section) {
		for _, key := range slices.Sorted(maps.Keys(config)) {
			if other, ok := resources[key]; ok && ours(key) {
				v := config[key]
				found = append(found,
					v.Problem(
						"a second value of "+key+", "+quote(v.Text)+", beside "+other.String()+", "+quote(other.Text),
						"one value at this level", "keep one of the two"))
			}
		}
	}
	check(s.Config, s.Resources)
	for _, name := range slices.Sorted(maps.Keys(s.ComponentConfig)) {
		check(s.ComponentConfig[name], s.ComponentResources[name])
	}
	return found
}

// misplaced reports unknown keys of muster, and keys of the whole app inside a component.
func (s Sources) misplaced(table keyTable) Problems {
	var found Problems
	check := func(section Section, component bool) {
		for _, name := range slices.Sorted(maps.Keys(section)) {
			if !ours(name) {
				continue
			}
			v := section[name]
			key, known := table.of(name)
			switch {
			case !known:
				found = append(found, v.Warning("unknown key "+quote(name), "a key that muster knows",
					didYouMean(name, table.names())))
			case component && key.Global:
				found = append(found, v.Problem("the key "+name+" in a component", "it in global",
					"it holds for the whole app"))
			}
		}
	}
	check(s.Config, false)
	check(s.Resources, false)
	for _, sections := range []map[string]Section{s.ComponentConfig, s.ComponentResources} {
		for _, name := range slices.Sorted(maps.Keys(sections)) {
			check(sections[name], true)
		}
	}
	return found
}
