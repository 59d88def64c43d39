package appdef

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Differences names what two definitions differ in, as far as their digests count it: keys as they are written, with
// the component that they are of, else parts of the definition as JSON pointers. Values are not named: they may be
// secret.
func Differences(a, b App) []string {
	ta, errA := treeOf(a.neutral())
	tb, errB := treeOf(b.neutral())
	if errA != nil || errB != nil {
		return nil
	}
	var keys, parts []string
	compare("", "", ta, tb, func(pointer, component, key string) {
		if key == "" {
			parts = append(parts, pointer)
			return
		}
		if component != "" {
			key += " of " + component
		}
		keys = append(keys, key)
	})
	if len(keys) > 0 { // the parts follow from them
		parts = keys
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// compare walks two trees of JSON. key is set for what is written as a key of a section.
func compare(pointer, component string, a, b any, differ func(pointer, component, key string)) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		if name, ok := x["name"].(string); ok && component == "" && strings.HasPrefix(pointer, "/components/") {
			component = name
		}
		for _, name := range union(x, y) {
			sections := name == "config" || name == "resources"
			u, isU := x[name].(map[string]any)
			v, isV := y[name].(map[string]any)
			if sections && (isU || isV) {
				for _, key := range union(u, v) {
					if !reflect.DeepEqual(u[key], v[key]) {
						differ("", component, key)
					}
				}
				continue
			}
			compare(pointer+Pointer(name), component, x[name], y[name], differ)
		}
		return
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			compare(pointer+Pointer(strconv.Itoa(i)), component, x[i], y[i], differ)
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		differ(pointer, component, "")
	}
}

// union are the names of both, sorted.
func union(a, b map[string]any) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}
