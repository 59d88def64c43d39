package plan

import (
	"maps"
	"slices"
	"strings"
)

// granted is the number that the allocation has for a port: under its own name once it is claimed,
// else under a launcher's label that means the same: `global_ps_port` or `ps_port` for
// `global.ps.port`. 0: none.
func (a Allocation) granted(port string) int {
	if n, ok := a.Ports[port]; ok {
		return n
	}
	full := Label(port)
	_, short, _ := strings.Cut(full, "_")
	for _, name := range slices.Sorted(maps.Keys(a.Ports)) {
		if l := Label(name); l == full || l == short {
			return a.Ports[name]
		}
	}
	return 0
}

// Label is a name in the form that all launchers' labels and our variables can have.
func Label(name string) string { return strings.ToLower(variable(name)) }

// variable is a name as part of a variable's: upper case, all but letters and digits `_`.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// list prints names as a sentence does.
func list(names []string) string { return strings.Join(names, ", ") }
