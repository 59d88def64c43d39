package ask

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// flexPlan is what a flex would do; `flex --explain --json` prints it.
type flexPlan struct {
	Version  int            `json:"version"`
	App      string         `json:"app"`
	Before   map[string]int `json:"before"`
	Counts   map[string]int `json:"counts"`
	Stops    []string       `json:"stops"`    // instances
	Starts   []string       `json:"starts"`   // instances, when all of them are staged
	Restarts []string       `json:"restarts"` // instances that run now and start again
	Why      string         `json:"why"`      // what Restarts follows from
	// Keeps are settings that name the hosts or the ports of a component whose count changes: a process that runs on
	// keeps the values that it has.
	Keeps []string `json:"keeps,omitempty"`
}

// explainFlex is what a flex between these counts of all components would do.
func explainFlex(app appdef.App, have, want map[string]int) flexPlan {
	p := flexPlan{
		Version: 1, Before: have, Counts: want, Stops: []string{}, Starts: []string{}, Restarts: []string{},
		Why: "no other process is told of the instances that start or stop",
	}
	restarts := false
	var running []string
	for _, c := range plan.Order(&app) {
		from, to := have[c.Name], want[c.Name]
		p.Starts = append(p.Starts, instances(c.Name, from, to)...)
		p.Stops = append(p.Stops, instances(c.Name, to, from)...)
		if c.Settings.Role != appdef.RoleService {
			running = append(running, instances(c.Name, 0, min(from, to))...)
		}
		if why := plan.WhyFlexRestarts(&app, c); why != "" && from != to && !restarts {
			restarts, p.Why = true, c.Name+": "+why
		}
	}
	switch {
	case len(p.Starts)+len(p.Stops) == 0:
		p.Why = "nothing changes"
	case restarts:
		p.Restarts = append(p.Restarts, running...)
	default:
		if p.Keeps = knownBy(&app, have, want); len(p.Keeps) > 0 {
			p.Why = "other processes know the instances that start or stop by their settings alone, and run on"
		}
	}
	return p
}

func instances(component string, from, to int) []string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, registry.Instance{Component: component, Index: i}.String())
	}
	return names
}

// knownBy are the settings by which those that go on running know instances of components whose counts change, each as
// KEY of COMPONENT.
func knownBy(app *appdef.App, have, want map[string]int) []string {
	var keys []string
	for _, c := range app.Components {
		if min(have[c.Name], want[c.Name]) == 0 {
			continue
		}
		var own []string
		for _, peer := range app.Components {
			if have[peer.Name] != want[peer.Name] {
				own = append(own, app.PeerKeys(c.Name, peer.Name)...)
			}
		}
		slices.Sort(own)
		for _, key := range slices.Compact(own) {
			keys = append(keys, key+" of "+c.Name)
		}
	}
	return keys
}

// print writes the plan for people.
func (p flexPlan) print(out io.Writer) {
	fmt.Fprintf(out, "%s: %s\n", p.App, changesText(p.Before, p.Counts))
	for _, row := range []struct {
		what string
		list []string
	}{{"stops", p.Stops}, {"starts", p.Starts}, {"restarts", p.Restarts}} {
		text := strings.Join(row.list, ", ")
		if text == "" {
			text = "none"
		}
		fmt.Fprintf(out, "  %s: %s\n", row.what, text)
	}
	fmt.Fprintf(out, "  why: %s\n", p.Why)
	if len(p.Keeps) > 0 {
		fmt.Fprintf(out, "  keep the hosts and ports that they have until a restart: %s\n", strings.Join(p.Keeps, ", "))
	}
}

// changesText is which counts change.
func changesText(before, after map[string]int) string {
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if after[name] != before[name] {
			changed = append(changed, fmt.Sprintf("%s %d to %d", name, before[name], after[name]))
		}
	}
	if len(changed) == 0 {
		return "nothing changes"
	}
	return strings.Join(changed, ", ")
}
