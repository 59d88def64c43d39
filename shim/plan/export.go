package plan

import (
	"slices"
	"strconv"
	"strings"

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
	scope.Site = withoutPeers(scope.Site, peersOf(b.app, b.component.Name))
	add := func(where spot, group, name, template string, address bool) {
		if ofOtherSide(b.app, b.component, b.req.Index, template) {
			return
		}
		value, unresolved := scope.Expand(template)
		report, hint := b.warn, "it is published as written"
		if address && b.app.Settings.Framework != "none" {
			report, hint = b.problem, "others find this component by the export"
		}
		for _, missing := range unresolved {
			if b.warned(where(), missing) {
				continue
			}
			report(where, "${"+missing+"} in the export "+group+"."+name+" of "+b.component.Name, "a placeholder "+
				"with a value here: its own component's host, or site.<dict>.<key> that is set", hint)
		}
		out = append(out, Export{Group: group, Name: name, Template: template, Address: address, Value: value})
	}
	for _, ref := range b.component.CompExports {
		export, ok := b.app.Export(ref)
		if !ok {
			b.problem(b.at("comp_exports"), appdef.Quote(ref.String()), "an export of exportGroups", "")
			continue
		}
		add(b.exportAt(ref), ref.Group, ref.Name, export.Value, ref == b.component.Settings.ClusterExport)
	}
	for n, export := range b.component.ComponentExports {
		add(b.at("component_exports", strconv.Itoa(n), "value"), componentData, export.Name, export.Value, false)
	}
	return out
}

// exportAt is where the value of an export was written.
func (b *builder) exportAt(ref appdef.ExportRef) spot {
	return func() appdef.Place {
		for g, group := range b.app.ExportGroups {
			for e, export := range group.Exports {
				if group.Name == ref.Group && export.Name == ref.Name {
					return placeOf(b.app, "export_groups", strconv.Itoa(g), "exports", strconv.Itoa(e), "value")
				}
			}
		}
		return b.at("comp_exports")()
	}
}

// warned tells whether the definition has a warning of this placeholder there.
func (b *builder) warned(at appdef.Place, name string) bool {
	return slices.ContainsFunc(b.app.Warnings, func(w appdef.Problem) bool {
		return w.File == at.File && w.Pointer == at.Pointer && strings.Contains(w.Got, "${"+name+"}")
	})
}

// withoutPeers are the values in which ports of other components read 0: an export tells of the instance's own.
func withoutPeers(site map[string]string, peers []peerPort) map[string]string {
	if len(peers) == 0 {
		return site
	}
	fill := strings.NewReplacer(peerTokens(peers, func(string) map[string]int { return nil })...)
	return eachValue(site, fill.Replace)
}
