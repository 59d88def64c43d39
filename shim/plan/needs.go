package plan

import (
	"cmp"
	"maps"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// Needs is what must be allocated for an instance before its plan can be built.
type Needs struct {
	Ports       []Port
	GPUs        int
	GPUType     string
	GPUMemoryMB int
}

// NeedsOf lists what an instance must be granted: GPUs and ports. The ports are in the order in which its exports and
// then its configuration name them, then those of its side processes and of its ssh server. A port's name is the
// configuration key that requests it (`global.ps.port`); further ports of one value get `.2`, `.3` and so on. The port
// of a side process is `side.NAME`, that of the ssh server `ssh`.
func NeedsOf(app appdef.App, component string, index int) Needs {
	c := app.Component(component)
	if c == nil {
		return Needs{Ports: []Port{}}
	}
	return Needs{
		Ports: portsOf(&app, component, index),
		GPUs:  c.Limits.GPUs, GPUType: c.Limits.GPUType, GPUMemoryMB: c.Limits.GPUMemory,
	}
}

func portsOf(app *appdef.App, component string, index int) []Port {
	ports := []Port{}
	for _, need := range app.PortNeeds(component) {
		for i, claim := range need.Claims {
			ports = append(ports, Port{
				Name: portName(need.Key, i), Want: claim.Want,
				Allowed: allowedPorts(app, app.Component(component)),
				Shared:  !claim.PerContainer, Exact: app.Component(component).Settings.PortsExact && claim.Want > 0,
			})
		}
	}
	return append(append(ports, sidePorts(app, component, index)...), loginPorts(app, component)...)
}

func allowedPorts(app *appdef.App, c *appdef.Component) string {
	return cmp.Or(c.Config[appdef.AllowedPortsKey], app.Settings.AllowedPorts)
}

func portName(key string, i int) string {
	if i == 0 {
		return key
	}
	return key + "." + strconv.Itoa(i+1)
}

// portTexts are the values that request ports, by `<dict>.<key>`, with a token for each port of the instance and for
// each that another component hands on.
func portTexts(app *appdef.App, component string, index int) map[string]string {
	texts := map[string]string{}
	for _, port := range sidePorts(app, component, index) {
		texts[port.Name] = portToken + port.Name + "}}"
	}
	own := func(key string, n int) string { return portToken + portName(key, n) + "}}" }
	maps.Copy(texts, app.PortTexts(component, own, func(p appdef.PeerPort) string { return peerOf(p).token() }))
	return texts
}

// peersOf are the ports that a component reads of others.
func peersOf(app *appdef.App, component string) []peerPort {
	var peers []peerPort
	for _, p := range app.PeerPorts(component) {
		peers = append(peers, peerOf(p))
	}
	return peers
}

func peerOf(p appdef.PeerPort) peerPort {
	return peerPort{Component: p.Component, Name: portName(p.Key, p.N)}
}

// token stands for the number in a plan.
func (p peerPort) token() string { return portToken + p.Component + "/" + p.Name + "}}" }

// portFinder gives the ports of a component's first instance; nil while it has none.
type portFinder func(component string) map[string]int

// peerTokens pairs the token of each port with its number: 0 while it is unknown.
func peerTokens(peers []peerPort, ports portFinder) []string {
	var pairs []string
	for _, p := range peers {
		pairs = append(pairs, p.token(), strconv.Itoa(ports(p.Component)[p.Name]))
	}
	return pairs
}

// firstPort names the first port of the main process; empty: it has none.
func firstPort(ports []Port) string {
	for _, port := range ports {
		if _, side := appdef.CutSidePort(port.Name); !side && port.Name != loginPort {
			return port.Name
		}
	}
	return ""
}
