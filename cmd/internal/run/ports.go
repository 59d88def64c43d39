package run

import (
	"fmt"
	"strconv"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
)

// refusePorts tells before anything is made of a port that two instances would have to have: a run has one host, and
// would try again for ever. Agents that others start find out by themselves, for theirs may be several.
func refusePorts(app appdef.App) error {
	taken := map[int]registry.Instance{}
	for i, c := range app.Components {
		wants := exactPorts(app, c)
		for index := range c.Instances {
			in := registry.Instance{Component: c.Name, Index: index}
			for _, want := range wants {
				if other, twice := taken[want.number]; twice {
					at := app.Places[appdef.Pointer("components", strconv.Itoa(i), "config", want.key)]
					return exit.OfProblems(appdef.Problems{at.Problem(fmt.Sprintf("port %d for %s and for %s",
						want.number, other, in),
						"a port of its own for each instance on this host", "in a job file that is beginAt 0")})
				}
				taken[want.number] = in
			}
		}
	}
	return nil
}

// exactPort is one that nothing else will do for, and the key of the configuration that asks for it.
type exactPort struct {
	number int
	key    string
}

func exactPorts(app appdef.App, c appdef.Component) []exactPort {
	var all []exactPort
	if !c.Settings.PortsExact {
		return nil
	}
	for _, need := range app.PortNeeds(c.Name) {
		for _, claim := range need.Claims {
			if claim.Want > 0 {
				all = append(all, exactPort{claim.Want, "site." + need.Key})
			}
		}
	}
	return all
}
