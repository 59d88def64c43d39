package pai

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// The ports of a label are one value of the dictionary port: a list with a pattern for each. Those of http, whose first
// port is the task's address, have a value each: the keys of the others have a dash, which no label may contain.
const (
	portDict   = "port"
	portPrefix = "site." + portDict + "."
	labelHTTP  = "http"
	labelSSH   = "ssh"
)

const (
	mostPorts = 1000 // of one label
	lastPort  = 65535
)

// port is one entry of a portList.
type port struct {
	label string
	begin int // 0: any
	n     int
	at    appdef.Place
}

// portList reads a role's labels, by name; http and ssh are always among them.
func (l *loading) portList(c cursor) []port {
	all := map[string]port{}
	for _, one := range c.objects("portList") {
		one.knows(portKeys())
		p := port{
			label: one.required("label"), begin: one.wholeOr("beginAt", 0, lastPort, 0),
			n:  one.wholeOr("portNumber", 1, mostPorts, 1),
			at: one.place(),
		}
		first, twice := all[p.label]
		switch {
		case p.label == "":
		case !roleForm.MatchString(p.label):
			one.badAt("label", appdef.Quote(p.label), wantName, "")
		case twice:
			one.badAt("label", "a second label "+appdef.Quote(p.label), "a name of its own",
				"the first is at "+first.at.String())
		case p.begin+p.n-1 > lastPort:
			one.badAt("beginAt", "ports "+strconv.Itoa(p.begin)+" to "+strconv.Itoa(p.begin+p.n-1),
				"ports up to "+strconv.Itoa(lastPort), "")
		default:
			all[p.label] = p
		}
	}
	return l.sortedPorts(all, c.at("portList"))
}

// sortedPorts adds http and ssh to a role's labels.
func (l *loading) sortedPorts(all map[string]port, at appdef.Place) []port {
	for _, label := range []string{labelHTTP, labelSSH} {
		if _, there := all[label]; !there {
			all[label] = port{label: label, n: 1, at: at}
		}
	}
	ports := slices.SortedFunc(maps.Values(all), func(a, b port) int { return cmp.Compare(a.label, b.label) })
	l.meetings(ports)
	return ports
}

// meetings reports ports that two labels have in common: a number, or a name such as a.2 for the second port of a.
func (l *loading) meetings(ports []port) {
	numbers, names := map[int]string{}, map[string]string{}
	for _, p := range ports {
		for i := range p.n {
			if other, taken := numbers[p.begin+i]; taken && p.begin != 0 {
				l.found = append(l.found, p.at.Problem("port "+strconv.Itoa(p.begin+i)+" for "+p.label,
					"a port of its own", "it is "+other+"'s"))
				break
			}
			if p.begin != 0 {
				numbers[p.begin+i] = p.label
			}
		}
	}
	for _, p := range ports {
		for _, name := range p.names() {
			if other, taken := names[name]; taken {
				l.found = append(l.found, p.at.Problem(
					"a port called "+strings.TrimPrefix(name, portDict+".")+" of the label "+p.label, "another label",
					"the label "+other+" has one of that name"))
				break
			}
			names[name] = p.label
		}
	}
}

// names are the names of the plan's ports.
func (p port) names() []string {
	names := []string{portDict + "." + p.label}
	for i := 2; i <= p.n; i++ {
		if p.label == labelHTTP {
			names = append(names, httpKey(i))
			continue
		}
		names = append(names, names[0]+"."+strconv.Itoa(i))
	}
	return names
}

func httpKey(i int) string {
	if i == 1 {
		return portDict + "." + labelHTTP
	}
	return portDict + "." + labelHTTP + "-" + strconv.Itoa(i)
}

// setPorts writes the labels as values of the role's configuration, and publishes its address.
func (l *loading) setPorts(role string, ports []port, at appdef.Place) {
	static := false
	for _, p := range ports {
		patterns := make([]string, p.n)
		for i := range patterns {
			patterns[i] = "${" + role + ".ALLOCATED_PORT}"
			if p.begin != 0 {
				patterns[i] += "{DEFAULT_" + strconv.Itoa(p.begin+i) + "}"
			}
			patterns[i] += "{PER_CONTAINER}"
			if p.label == labelHTTP {
				l.draft.Set(role, "site."+httpKey(i+1), patterns[i], p.at)
			}
		}
		if p.label != labelHTTP {
			l.draft.Set(role, portPrefix+p.label, strings.Join(patterns, ","), p.at)
		}
		static = static || p.begin != 0
	}
	if static {
		l.draft.Set(role, exactKey, "true", at)
	}
	l.publish(role)
}

// publish makes the first port of http the address of the role's tasks. A role may have a name that no export group can
// have.
func (l *loading) publish(role string) {
	group := strings.TrimLeft(strings.NewReplacer(".", "_", "~", "_", "-", "_").Replace(role), "_")
	if group == "" {
		group = "role"
	}
	for l.groups[strings.ToLower(group)] {
		group += "_"
	}
	l.groups[strings.ToLower(group)] = true
	app := &l.draft.App
	app.ExportGroups = append(app.ExportGroups, appdef.ExportGroup{
		Name:    group,
		Exports: []appdef.Export{{Name: "host_port", Value: "${" + role + "_HOST}:${site." + httpKey(1) + "}"}},
	})
	component := app.Component(role)
	component.CompExports = append(component.CompExports, appdef.ExportRef{Group: group, Name: "host_port"})
	if len(app.ConfigFiles) == 0 { // the dictionary is declared
		app.ConfigFiles = []appdef.ConfigFile{{
			Type: "properties", FileName: portDict + ".properties",
			Dictionary: portDict,
		}}
	}
}
