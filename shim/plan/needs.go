package plan

import (
	"cmp"
	"strconv"
	"strings"

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
// then its configuration name them, then those of its side processes. A port's name is the configuration key that
// requests it (`global.ps.port`); further ports of one value get `.2`, `.3` and so on. The port of a side process is
// `side.NAME`.
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
				Allowed: cmp.Or(app.Component(component).Config[appdef.AllowedPortsKey], app.Settings.AllowedPorts),
				Shared:  !claim.PerContainer, Exact: app.Component(component).Settings.PortsExact && claim.Want > 0,
			})
		}
	}
	return append(ports, sidePorts(app, component, index)...)
}

func portName(key string, i int) string {
	if i == 0 {
		return key
	}
	return key + "." + strconv.Itoa(i+1)
}

// portTexts are the values that request ports, by `<dict>.<key>`, with a token for each port.
func portTexts(app *appdef.App, component string, index int) map[string]string {
	texts := map[string]string{}
	for _, port := range sidePorts(app, component, index) {
		texts[port.Name] = portToken + port.Name + "}}"
	}
	for _, need := range app.PortNeeds(component) {
		text := app.Component(component).Config["site."+need.Key]
		for i := range need.Claims {
			before, after, _ := strings.Cut(text, "${"+component+".ALLOCATED_PORT}")
			text = before + portToken + portName(need.Key, i) + "}}" + cutOptions(after)
		}
		texts[need.Key] = text
	}
	return texts
}

// cutOptions drops the options of the pattern before it; the parser has checked them.
func cutOptions(text string) string {
	if rest, ok := strings.CutPrefix(text, "{DEFAULT_"); ok {
		_, text, _ = strings.Cut(rest, "}")
	}
	return strings.TrimPrefix(text, "{PER_CONTAINER}")
}

// firstPort names the first port of the main process; empty: it has none.
func firstPort(ports []Port) string {
	for _, port := range ports {
		if _, side := appdef.CutSidePort(port.Name); !side {
			return port.Name
		}
	}
	return ""
}
