package plan

import (
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// componentData is the group under which Slider publishes a component's componentExports.
const componentData = "ComponentInstanceData"

// exports are the values that the instance publishes. The templates stay as the definition has
// them; Value is the same with all filled in but the host and the ports.
func (b *builder) exports() []Export {
	out := []Export{}
	scope := b.scope
	scope.Host, scope.Export = hostToken, true
	add := func(where spot, group, name, template string, address bool) {
		if ofOtherSide(b.app, b.component, b.req.Index, template) {
			return
		}
		value, unresolved := scope.Expand(template)
		for _, missing := range unresolved {
			b.problem(where, "${"+missing+"} in an export of "+b.component.Name, "a placeholder that is known",
				"an export may name its own component's host and site.<dict>.<key>")
		}
		out = append(out, Export{Group: group, Name: name, Template: template, Address: address, Value: value})
	}
	for _, ref := range b.component.CompExports {
		export, ok := b.app.Export(ref)
		if !ok {
			b.problem(b.at("comp_exports"), appdef.Quote(ref.String()), "an export of exportGroups", "")
			continue
		}
		add(b.at("comp_exports"), ref.Group, ref.Name, export.Value, ref == b.component.Settings.ClusterExport)
	}
	for _, export := range b.component.ComponentExports {
		add(b.at("component_exports"), componentData, export.Name, export.Value, false)
	}
	return out
}

// Publish gives the values of the plan's exports, by `<group>.<name>`, on this host with these
// ports (by Port.Name), and the instance's address in the ClusterSpec: host:port, or empty when no
// export is one. An IPv6 host is put into brackets before a port. With muster.address=dns the address has the member's name in
// place of the host, the exports, which people read, have not.
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

// named is the address with the member's name, if it goes by one.
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
