package plan

import (
	"maps"
	"slices"
	"strings"
)

// granted is the port number of the allocation: under the port's own name once it is claimed, else under a launcher's
// label with the same meaning: `global_ps_port` or `ps_port` for `global.ps.port`. 0: none.
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

// Label is a name in a form that every launcher's labels and muster's variables allow.
func Label(name string) string { return strings.ToLower(variable(name)) }

// variable is a name as a part of a variable's name: upper case, with `_` for all but letters and digits.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// list writes names with commas between them.
func list(names []string) string { return strings.Join(names, ", ") }
