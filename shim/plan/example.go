package plan

import (
	"strconv"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// ExampleRoster invents a host and usual ports for each awaited instance, so that a plan can show its start without a
// gang. It drops Build's problems: the plan itself reports them.
func ExampleRoster(app appdef.App, req Request) registry.Roster {
	app = app.WithCounts(req.Instances)
	r := registry.Roster{Version: 1, Run: req.Run, Gen: 1, Rows: []registry.Row{}}
	for rank, instance := range Instances(&app) {
		c := app.Component(instance.Component)
		if late(c) != 0 {
			break
		}
		one := req
		one.Component, one.Index, one.Instances = instance.Component, instance.Index, nil
		b := builder{app: &app, req: one, component: c}
		b.scope = one.scope(&app, portTexts(&app, c.Name, instance.Index))
		p := Plan{Network: Network{Ports: portsOf(&app, c.Name, instance.Index), Exports: b.exports()}}
		p.Discovery = b.discovery(p)
		ports := map[string]int{}
		for i, port := range p.Ports {
			ports[port.Name] = appdef.FirstPort + i
		}
		host := "host-" + strconv.Itoa(rank) + ".example"
		exports, address := Publish(p, host, ports)
		if address == "" {
			address = host
		}
		r.Rows = append(r.Rows, registry.Row{
			Instance: instance, Rank: rank, Role: string(c.Settings.Role), Addr: address, Ports: ports,
			Exports: exports,
		})
	}
	return r
}
