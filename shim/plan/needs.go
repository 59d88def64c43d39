package plan

import (
	"regexp"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// Needs is what must be got for an instance before its plan can be built.
type Needs struct {
	Ports       []Port
	GPUs        int
	GPUType     string
	GPUMemoryMB int
}

// NeedsOf lists what an instance must be granted: ports in the order in which its exports and then
// its configuration name them, and GPUs. A port's name is the configuration key that asks for it
// (`global.ps.port`); the second and later ones of one value get `.2`, `.3` behind it. Today the
// answer is the same for every index of a component.
func NeedsOf(app appdef.App, component string, index int) Needs {
	_ = index
	c := app.Component(component)
	if c == nil {
		return Needs{Ports: []Port{}}
	}
	return Needs{
		Ports: portsOf(&app, component),
		GPUs:  c.Limits.GPUs, GPUType: c.Limits.GPUType, GPUMemoryMB: c.Limits.GPUMemory,
	}
}

func portsOf(app *appdef.App, component string) []Port {
	ports := []Port{}
	for _, need := range app.PortNeeds(component) {
		for i, claim := range need.Claims {
			ports = append(ports, Port{
				Name: portName(need.Key, i), Want: claim.Want, Allowed: app.Settings.AllowedPorts,
			})
		}
	}
	return ports
}

func portName(key string, i int) string {
	if i == 0 {
		return key
	}
	return key + "." + strconv.Itoa(i+1)
}

// portTexts are the values that ask for ports, by `<dict>.<key>`, with a token for each port.
func portTexts(app *appdef.App, component string) map[string]string {
	texts := map[string]string{}
	var pattern *regexp.Regexp
	for _, need := range app.PortNeeds(component) {
		if pattern == nil {
			pattern = regexp.MustCompile(regexp.QuoteMeta("${"+component+".ALLOCATED_PORT}") +
				`(?:\{DEFAULT_[0-9]+\})?(?:\{PER_CONTAINER\})?`)
		}
		n := -1
		value := app.Component(component).Config["site."+need.Key]
		texts[need.Key] = pattern.ReplaceAllStringFunc(value, func(string) string {
			n++
			return portToken + portName(need.Key, n) + "}}"
		})
	}
	return texts
}

// portWarnings names the values without {PER_CONTAINER}: Slider gives such a port's number to all
// containers, which cannot hold where two of them share a host.
func portWarnings(app *appdef.App, i int) appdef.Problems {
	var out appdef.Problems
	c := app.Components[i]
	for _, need := range app.PortNeeds(c.Name) {
		for _, claim := range need.Claims {
			if !claim.PerContainer && c.Instances > 1 {
				key := "site." + need.Key
				out = append(out, placeOf(app, "components", strconv.Itoa(i), "config", key).Warning(
					appdef.Quote(c.Config[key]), "{PER_CONTAINER} behind the port",
					"each instance gets a port of its own all the same"))
			}
		}
	}
	return out
}
