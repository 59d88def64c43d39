package appdef

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// portText is a configuration value that asks for ports: what to claim, and the text around it.
//
// The rules are Slider's (slider-agent, CustomServiceOrchestrator.finalize_command):
//   - `${C.ALLOCATED_PORT}`, then optionally `{DEFAULT_n}`, then optionally `{PER_CONTAINER}`;
//     C matches the component's name exactly.
//   - each own pattern is a port of its own; patterns of other components beside one stay as written.
//   - a value that has only other components' patterns is not for this component: every `${…}`
//     in it, with the `{…}` that follow, becomes 0, and nothing is claimed.
type portText struct {
	Claims []PortClaim // in order of appearance; empty: nothing to claim
	parts  []string    // the text around the claims, one more than there are claims
}

// PortClaim is one port to claim.
type PortClaim struct {
	Want         int  // DEFAULT_n; 0: any
	PerContainer bool // false: all instances try for one number
}

// parsePort reads the port patterns in a value, from the view of a component. A value without patterns is a portText
// without claims, which fills to itself.
func parsePort(value, component string) (portText, error) {
	own := "${" + component + portSuffix + "}"
	if !strings.Contains(value, own) {
		if !hasPort(value) {
			return portText{parts: []string{value}}, nil
		}
		return portText{parts: []string{zeroed(value)}}, nil
	}
	var t portText
	for {
		before, after, found := strings.Cut(value, own)
		t.parts = append(t.parts, before)
		if !found {
			return t, nil
		}
		claim, rest, err := portOptions(after)
		if err != nil {
			return portText{}, err
		}
		t.Claims = append(t.Claims, claim)
		value = rest
	}
}

// hasPort tells whether text has a port pattern of any component.
func hasPort(text string) bool { return strings.Contains(text, portSuffix+"}") }

// Fill puts the ports in place of the patterns. Ports that are missing read 0.
func (t portText) Fill(ports ...int) string {
	var b strings.Builder
	for i, part := range t.parts {
		if i > 0 {
			port := 0
			if i <= len(ports) {
				port = ports[i-1]
			}
			b.WriteString(strconv.Itoa(port))
		}
		b.WriteString(part)
	}
	return b.String()
}

// portOptions reads `{DEFAULT_n}{PER_CONTAINER}` at the start of text.
func portOptions(text string) (claim PortClaim, rest string, err error) {
	if number, ok := strings.CutPrefix(text, "{DEFAULT_"); ok {
		number, text, ok = strings.Cut(number, "}")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 0 || n > 65535 {
			return claim, "", fmt.Errorf("{DEFAULT_%s}: want a port number, 0 to 65535", number)
		}
		claim.Want = n
	}
	rest, claim.PerContainer = strings.CutPrefix(text, perContainer)
	return claim, rest, nil
}

// zeroed replaces each `${…}` and the groups `{…}` directly behind it by 0.
func zeroed(value string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(value, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, rest, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("${" + value[len(before)+2:])
			return b.String()
		}
		b.WriteByte('0')
		value = afterGroups(rest)
	}
}

// afterGroups drops the groups `{…}` at the start of text.
func afterGroups(text string) string {
	for strings.HasPrefix(text, "{") {
		_, next, closed := strings.Cut(text, "}")
		if !closed {
			break
		}
		text = next
	}
	return text
}

// PortNeed is one configuration value of a component that needs ports.
type PortNeed struct {
	Key  string // <dict>.<key>: global.ps.port
	Text string // the value, with its patterns
	portText
}

// PortNeeds lists the values of a component that need ports: first those that its exports name, in the order of the
// exports, then the rest by key. It leaves out a malformed pattern; Validate reports it.
func (a *App) PortNeeds(component string) []PortNeed {
	c := a.Component(component)
	if c == nil {
		return nil
	}
	var needs []PortNeed
	for key, value := range a.portValues(c) {
		if t, err := parsePort(value, component); err == nil && len(t.Claims) > 0 {
			needs = append(needs, PortNeed{Key: key, Text: value, portText: t})
		}
	}
	exported := a.exportedKeys(c)
	rank := func(n PortNeed) int {
		if i := slices.Index(exported, n.Key); i >= 0 {
			return i
		}
		return len(exported)
	}
	slices.SortFunc(needs, func(x, y PortNeed) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(x.Key, y.Key))
	})
	return needs
}

// exportedKeys are the configuration keys that a component's exports name, the cluster export first.
func (a *App) exportedKeys(c *Component) []string {
	var keys []string
	refs := append([]ExportRef{c.Settings.ClusterExport}, c.CompExports...)
	for _, ref := range refs {
		export, _ := a.Export(ref)
		for _, name := range Placeholders(export.Value) {
			if dict, key, ok := siteKey(name); ok {
				keys = append(keys, dict+"."+key)
			}
		}
	}
	return keys
}

// The default range of ports.
const (
	FirstPort = 20000
	LastPort  = 29999
)

// PortRange is a range of ports, both ends included.
type PortRange struct{ From, To int }

// ParsePortRanges reads a comma list of ports and ranges, `9000,9010-9020`; a range may name its
// larger end first (the form of slider.allowed.ports).
func ParsePortRanges(text string) ([]PortRange, error) {
	var ranges []PortRange
	for part := range strings.SplitSeq(text, ",") {
		from, to, two := strings.Cut(strings.TrimSpace(part), "-")
		if !two {
			to = from
		}
		low, err1 := strconv.Atoi(strings.TrimSpace(from))
		high, err2 := strconv.Atoi(strings.TrimSpace(to))
		low, high = min(low, high), max(low, high)
		if err1 != nil || err2 != nil || low < 1 || high > 65535 {
			return nil, fmt.Errorf("ports %s: want numbers and ranges from 1 to 65535, such as 9000,9010-9020",
				quote(part))
		}
		ranges = append(ranges, PortRange{From: low, To: high})
	}
	return ranges, nil
}
