package plan

import (
	"maps"
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
		b.unresolvedExport(where, group+"."+name, unresolved, address && b.app.Settings.Framework != "none")
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

// appExports are the exports that a component publishes for the whole app. The hosts in them are known later.
func (b *builder) appExports() []Export {
	var out []Export
	for _, ref := range b.component.AppExports {
		export, ok := b.app.Export(ref)
		if !ok || ofOtherSide(b.app, b.component, b.req.Index, export.Value) {
			continue
		}
		_, unresolved := b.scope.Expand(export.Value)
		b.unresolvedExport(b.exportAt(ref), ref.Group+"."+ref.Name, slices.DeleteFunc(unresolved, b.isHost), false)
		out = append(out, Export{Group: ref.Group, Name: ref.Name, Template: export.Value})
	}
	return out
}

// publishedConfigs are the dictionaries that a component with scripts publishes for the whole app.
func (b *builder) publishedConfigs(s *Script) []string {
	if s == nil || !publishesConfig(b.app, b.component) {
		return nil
	}
	dicts, _ := b.scope.Dictionaries()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(dicts)), func(dict string) bool {
		return !exportsConfig(b.app, dict)
	})
}

// unresolvedExport reports placeholders of an export without a value. Slider publishes them as written; others cannot
// find a member by such an address.
func (b *builder) unresolvedExport(where spot, name string, unresolved []string, isAddress bool) {
	report, hint := b.warn, "it is published as written"
	if isAddress {
		report, hint = b.problem, "others find this component by the export"
	}
	for _, missing := range unresolved {
		if b.warned(where(), missing) {
			continue
		}
		want, remedy := "its own component's host, or site.<dict>.<key> that is set", ""
		if slices.Contains(appdef.ClientNames(), missing) {
			want, remedy = "a value for "+missing, "; "+b.remedy(missing)
		}
		report(where, "${"+missing+"} in the export "+name+" of "+b.component.Name, want, hint+remedy)
	}
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
