package plan

import (
	"slices"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// discovery is nil if the app has no name yet or the instance exports no port.
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

// Frameworks that cannot work with names in place of addresses, and those that resolve a name only at their start.
var (
	wantAddresses = map[string]string{
		"lightgbm": "LightGBM looks for its own addresses among those of the machines",
		"lightlda": "LightLDA's servers listen at the address that they are told",
		"mpi":      "mpirun goes by the hosts' addresses",
		"horovod":  "mpirun goes by the hosts' addresses",
		"cntk":     "mpirun goes by the hosts' addresses",
	}
	resolveOnce = []string{appdef.HorovodGloo, "jax", "mxnet", "pytorch", "tony", "xdl", "xflow", "xgboost"}
)

// resolving warns if the framework does not handle names well.
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
