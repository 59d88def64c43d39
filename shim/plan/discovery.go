package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// Discovery is how others find the instance in Consul, where that is the registry.
type Discovery struct {
	Service string `json:"service"` // that the component's instances are in
	Tag     string `json:"tag"`     // that this one alone has
	// Address is the name that the gang is told in place of the host; empty: the host's address.
	Address string `json:"address,omitempty"`
}

// Endpoint is a port of this instance that others are told of.
type Endpoint struct {
	Port    int
	Exports []string // <group>.<name>
	Values  []string // of these exports
	Member  bool     // the one that the instance's own name stands for
}

// discovery is nothing where the app has no name yet, or the instance exports no port.
func (b *builder) discovery(p Plan) *Discovery {
	dns := b.app.Settings.Address == appdef.AddressDNS
	if !slices.ContainsFunc(p.Exports, Export.hasPort) {
		if dns && trains(b.component) {
			b.warn(b.key(addressKey), appdef.AddressDNS, "an export of the form host:port of "+b.component.Name,
				"without one it is in no service, and is written by its host's address")
		}
		return nil
	}
	if dns {
		b.resolving()
	}
	if b.req.AppID == "" {
		return nil
	}
	in := registry.Instance{Component: b.req.Component, Index: b.req.Index}
	d := Discovery{Service: registry.ServiceName(b.req.AppID, in.Component), Tag: registry.MemberTag(b.req.AppID, in)}
	if dns && !b.req.NoDNS {
		b.byName = true
		d.Address = registry.MemberName(b.req.AppID, in, b.req.Domain)
	}
	return &d
}

const addressKey = "muster.address"

// Frameworks that cannot work with names in place of addresses, and those that ask for a name when they start and never again.
var (
	wantAddresses = map[string]string{
		"lightgbm": "LightGBM looks for its own addresses among those of the machines",
		"lightlda": "LightLDA's servers listen at the address that they are told",
		"mpi":      "mpirun goes by the hosts' addresses",
		"horovod":  "mpirun goes by the hosts' addresses",
		"cntk":     "mpirun goes by the hosts' addresses",
	}
	resolveOnce = []string{"jax", "mxnet", "pytorch", "xdl", "xflow", "xgboost"}
)

// resolving says what a framework makes of names.
func (b *builder) resolving() {
	framework := b.app.Settings.Framework
	if why, ok := wantAddresses[framework]; ok {
		b.problem(b.key(addressKey), appdef.AddressDNS+" with "+framework, "host", why)
	}
	if slices.Contains(resolveOnce, framework) {
		b.warn(b.key(addressKey), appdef.AddressDNS+" with "+framework, "host, or a program that resolves names again",
			framework+" asks for a name when it starts: a member that moves is found by those that start after it")
	}
}

// exported finds the ports behind the host in a text with all filled in but the host.
var exported = regexp.MustCompile(regexp.QuoteMeta(hostToken) + `:(\d{1,5})\b`)

// hasPort tells whether the export names a port, claimed or not.
func (e Export) hasPort() bool {
	return strings.Contains(e.Value, portToken) || exported.MatchString(e.Value)
}

// Endpoints are the ports that the plan's exports name, each once, with these numbers (by Port.Name) on this host. The first one
// is the member's, unless another is its address in the ClusterSpec.
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

// ports are the numbers in the export, each once: those of its tokens, and those that stand behind the host.
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
	for _, m := range exported.FindAllStringSubmatch(strings.NewReplacer(portTokens(ports, numbers)...).Replace(e.Value), -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		add(n)
	}
	return found
}
