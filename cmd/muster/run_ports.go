package main

import (
	"fmt"
	"strconv"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// refusePorts tells before anything is made of a port that two instances would have to have: a run has one host, and would try
// again for ever. Agents that others start find out by themselves, for theirs may be several.
func refusePorts(app appdef.App) error {
	taken := map[int]registry.Instance{}
	for i, c := range app.Components {
		for index := range c.Instances {
			in := registry.Instance{Component: c.Name, Index: index}
			for _, port := range plan.NeedsOf(app, c.Name, index).Ports {
				other, twice := taken[port.Want]
				switch {
				case !port.Exact:
				case twice:
					at := app.Places[appdef.Pointer("components", strconv.Itoa(i), "config", "muster.ports.exact")]
					return asError(appdef.Problems{at.Problem(fmt.Sprintf("port %d for %s and for %s", port.Want, other, in),
						"a port of its own for each instance on this host", "in a job file that is beginAt 0")})
				default:
					taken[port.Want] = in
				}
			}
		}
	}
	return nil
}
