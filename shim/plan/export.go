package plan

import (
	"github.com/muster-agent/muster/appdef"
)

// componentData is the group under which Slider publishes a component's componentExports.
const componentData = "ComponentInstanceData"

// exports are the values that the instance publishes. Templates stay as the definition has them; Value has everything
// filled in but the host and the ports.
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
