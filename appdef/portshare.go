package appdef

import (
	"maps"
	"slices"
	"strings"
)

// PeerPort is a port that a component reads of another one: the Nth (from 0) that the value of Key asks for there.
type PeerPort struct {
	Component string
	Key       string // <dict>.<key>
	N         int
}

// perContainer follows a port that each instance keeps to itself.
const perContainer = "{PER_CONTAINER}"

// PortTexts are a component's values with port patterns, by `<dict>.<key>`. Each port of its own is replaced by what
// own gives for it, the Nth of its key; each that another component claims under the same key by what peer gives.
//
// The rules are Slider's (AgentProviderService.addNamedConfiguration): a number that one component has reported for a
// key is handed on to all others that have a value for the key, unless that value says {PER_CONTAINER}. Any other port
// of another component reads 0, or stays as written beside one of the component's own.
func (a *App) PortTexts(component string, own func(key string, n int) string, peer func(PeerPort) string,
) map[string]string {
	c := a.Component(component)
	if c == nil {
		return nil
	}
	texts := map[string]string{}
	for key, value := range a.portValues(c) {
		if _, err := parsePort(value, component); err != nil { // Validate reports it
			continue
		}
		texts[key] = a.portTextOf(c, key, value, own, peer)
	}
	return texts
}

func (a *App) portTextOf(
	c *Component, key, value string, own func(key string, n int) string, peer func(PeerPort) string,
) string {
	var b strings.Builder
	mixed := strings.Contains(value, "${"+c.Name+portSuffix+"}")
	seen := map[string]int{} // ports of each component
	for rest := value; rest != ""; {
		before, ph, after, found := cutPlaceholder(rest)
		b.WriteString(before)
		if !found {
			break
		}
		rest = after
		owner, ok := strings.CutSuffix(ph.name, portSuffix)
		if !ok {
			b.WriteString(ph.text)
			continue
		}
		n := seen[owner]
		seen[owner]++
		_, behind, err := portOptions(after)
		switch {
		case err == nil && owner == c.Name:
			b.WriteString(own(key, n))
			rest = behind
		case err == nil && a.handsOn(PeerPort{Component: owner, Key: key, N: n}, value):
			b.WriteString(peer(PeerPort{Component: owner, Key: key, N: n}))
			rest = behind
		case mixed:
			b.WriteString(ph.text)
		default:
			b.WriteString("0")
			rest = afterGroups(after)
		}
	}
	return b.String()
}

// handsOn tells whether a component claims the port that another one's value names.
func (a *App) handsOn(p PeerPort, value string) bool {
	owner := a.Component(p.Component)
	if owner == nil || strings.Contains(value, perContainer) {
		return false
	}
	t, err := parsePort(a.portValues(owner)[p.Key], p.Component)
	return err == nil && p.N < len(t.Claims)
}

// portValues are the component's values with a port pattern, by `<dict>.<key>`: those of the configuration, and the
// package's defaults where it has none.
func (a *App) portValues(c *Component) map[string]string {
	values := map[string]string{}
	for dict, defaults := range a.Defaults {
		for key, value := range defaults {
			if _, ok := c.Config["site."+dict+"."+key]; !ok && hasPort(value) {
				values[dict+"."+key] = value
			}
		}
	}
	for key, value := range c.Config {
		if name, ok := strings.CutPrefix(key, "site."); ok && hasPort(value) {
			values[name] = value
		}
	}
	return values
}

// PeerPorts are the ports that a component reads of others, sorted by their key.
func (a *App) PeerPorts(component string) []PeerPort {
	found := map[PeerPort]bool{}
	a.PortTexts(component, func(string, int) string { return "" }, func(p PeerPort) string {
		found[p] = true
		return ""
	})
	return slices.SortedFunc(maps.Keys(found), func(x, y PeerPort) int {
		if x.Key != y.Key {
			return strings.Compare(x.Key, y.Key)
		}
		if x.Component != y.Component {
			return strings.Compare(x.Component, y.Component)
		}
		return x.N - y.N
	})
}
