package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Publish returns the values of the plan's exports, by `<group>.<name>`, for this host and these ports (by Port.Name),
// and the instance's address in the ClusterSpec: host:port, or empty if no export is one. An IPv6 host gets brackets
// before a port. With muster.address=dns the address contains the member's name in place of the host; the exports,
// which people read, keep the host.
func Publish(p Plan, host string, ports map[string]int) (exports map[string]string, address string) {
	exports = map[string]string{}
	tokens := append(portTokens(p.Ports, ports), hostToken+":", bracket(host)+":", hostToken, host)
	fill := strings.NewReplacer(tokens...)
	for _, e := range p.Exports {
		value := fill.Replace(e.Value)
		exports[e.Group+"."+e.Name] = value
		if e.Address {
			address = p.named(e, ports, value)
		}
	}
	return exports, address
}

// named is the address with the member's name, if the member is addressed by name.
func (p Plan) named(e Export, ports map[string]int, value string) string {
	if p.Discovery == nil || p.Discovery.Address == "" {
		return value
	}
	return strings.NewReplacer(append(portTokens(p.Ports, ports), hostToken, p.Discovery.Address)...).Replace(e.Value)
}

func bracket(host string) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return "[" + host + "]"
	}
	return host
}

// Endpoint is a published port of this instance.
type Endpoint struct {
	Port    int
	Exports []string // <group>.<name>
	Values  []string // of these exports
	Member  bool     // the member's name stands for this port
}

// Endpoints are the ports that the plan's exports name, each once, with these numbers (by Port.Name) on this host. The
// first is the member's, unless another one is its address in the ClusterSpec.
func Endpoints(p Plan, host string, ports map[string]int) []Endpoint {
	var all []Endpoint
	values, _ := Publish(p, host, ports)
	member := 0
	for _, e := range p.Exports {
		for _, port := range e.ports(p.Ports, ports) {
			at := slices.IndexFunc(all, func(o Endpoint) bool { return o.Port == port })
			if at < 0 {
				at, all = len(all), append(all, Endpoint{Port: port})
			}
			name := e.Group + "." + e.Name
			all[at].Exports, all[at].Values = append(all[at].Exports, name), append(all[at].Values, values[name])
			if e.Address {
				member = at
			}
		}
	}
	if len(all) > 0 {
		all[member].Member = true
	}
	return all
}

// ports are the numbers in the export, each once: those of its tokens, and those behind the host.
func (e Export) ports(ports []Port, numbers map[string]int) []int {
	var found []int
	add := func(n int) {
		if n > 0 && n <= 65535 && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	for _, port := range ports {
		if strings.Contains(e.Value, portToken+port.Name+"}}") {
			n, known := numbers[port.Name]
			if !known {
				n = port.Port
			}
			add(n)
		}
	}
	for _, m := range exported.FindAllStringSubmatch(strings.NewReplacer(portTokens(ports,
		numbers)...).Replace(e.Value), -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		add(n)
	}
	return found
}

// hasPort tells whether the export names a port, claimed or not.
func (e Export) hasPort() bool {
	return strings.Contains(e.Value, portToken) || exported.MatchString(e.Value)
}

// exported finds the ports behind the host in a text in which only the host is not filled in.
var exported = regexp.MustCompile(regexp.QuoteMeta(hostToken) + `:(\d{1,5})\b`)

// portTokens pairs the token of each port with its number: the given one, else the plan's, which is 0 before the claim.
func portTokens(ports []Port, given map[string]int) []string {
	var pairs []string
	for _, p := range ports {
		n, ok := given[p.Name]
		if !ok {
			n = p.Port
		}
		pairs = append(pairs, portToken+p.Name+"}}", strconv.Itoa(n))
	}
	return pairs
}
