package appdef

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// orders checks commandOrders: form, components and cycles.
func (v *validation) orders() {
	for n, order := range v.app.CommandOrders {
		at := v.app.place("command_orders", strconv.Itoa(n), "command")
		v.ordered(at, order.Component)
		if order.Command != "START" && order.Command != "" {
			v.bad(at, quote(order.Component+"-"+order.Command), "COMPONENT-START", "only starts can be ordered")
		}
		at = v.app.place("command_orders", strconv.Itoa(n), "requires")
		for _, r := range order.Requires {
			if v.ordered(at, r.Component) && v.app.Component(r.Component).Instances == 0 {
				v.warn(at, r.Component+"-"+r.State+" of a component with 0 instances", "an instance of "+r.Component,
					order.Component+" does not wait for it")
			}
			if r.State != "STARTED" && r.State != "INSTALLED" && r.State != "" {
				v.bad(at, quote(r.Component+"-"+r.State), "COMPONENT-STARTED or COMPONENT-INSTALLED",
					didYouMean(r.State, []string{"STARTED", "INSTALLED"}))
			}
		}
	}
	v.orderCycles()
}

// ordered checks a component that an order names, and tells whether it can have instances.
func (v *validation) ordered(at Place, name string) bool {
	i, ok := v.where[name]
	switch {
	case name == "": // the form is at fault
		return false
	case !ok:
		v.bad(at, "the unknown component "+quote(name), OneOf(v.names(), "a component of metainfo"),
			didYouMean(name, v.names()))
		return false
	case v.app.Components[i].Category == "CLIENT":
		v.bad(at, "the CLIENT "+name, "a component that runs", "a client is installed, not run")
		return false
	}
	return true
}

// orderCycles reports each cycle of starts that wait for starts, once, where its first order is written.
func (v *validation) orderCycles() {
	waits, written := map[string][]string{}, map[string]int{}
	for n, order := range v.app.CommandOrders {
		if _, ok := written[order.Component]; !ok {
			written[order.Component] = n
		}
		for _, r := range order.Requires {
			if r.State == "STARTED" {
				waits[order.Component] = append(waits[order.Component], r.Component)
			}
		}
	}
	next := func(name string) []string { return waits[name] }
	for _, cycle := range cycles(v.app.ComponentNames(), next) {
		first := slices.MinFunc(cycle, func(x, y string) int { return cmp.Compare(written[x], written[y]) })
		v.bad(v.app.place("command_orders", strconv.Itoa(written[first]), "requires"),
			first+"-START requires "+strings.Join(rotate(cycle, first)[1:],
				"-STARTED requires ")+"-STARTED", "an order without a cycle", "")
	}
}

// cycles finds cycles by a walk from each node in turn: every node is entered once, and an edge
// back to an open node closes a cycle, given as the nodes with the first one again at the end.
func cycles(nodes []string, next func(string) []string) [][]string {
	const open, done = 1, 2
	state := map[string]int{}
	var path []string
	var found [][]string
	var walk func(node string)
	walk = func(node string) {
		state[node] = open
		path = append(path, node)
		for _, to := range next(node) {
			switch state[to] {
			case open:
				found = append(found, append(slices.Clone(path[slices.Index(path, to):]), to))
			case 0:
				walk(to)
			}
		}
		path = path[:len(path)-1]
		state[node] = done
	}
	for _, node := range nodes {
		if state[node] == 0 {
			walk(node)
		}
	}
	return found
}

// rotate turns a cycle so that it begins and ends with first.
func rotate(cycle []string, first string) []string {
	ring := cycle[:len(cycle)-1]
	at := slices.Index(ring, first)
	return slices.Concat(ring[at:], ring[:at], []string{first})
}
