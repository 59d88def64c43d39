package appdef

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

func (v *validation) exportGroups() {
	groups := map[string]bool{}
	for g, group := range v.app.ExportGroups {
		at := v.app.place("export_groups", strconv.Itoa(g), "name")
		low := strings.ToLower(group.Name)
		if group.Name != "" && !groupForm.MatchString(low) {
			v.bad(at, quote(group.Name), "a name of letters, digits and _ + -, a letter or digit first", "")
		}
		if groups[low] && low != "" {
			v.bad(at, "a second export group "+quote(group.Name), "a name of its own",
				"groups are published in lower case")
		}
		groups[low] = true
		names := map[string]bool{}
		for e, export := range group.Exports {
			at := v.app.place("export_groups", strconv.Itoa(g), "exports", strconv.Itoa(e), "name")
			if names[export.Name] && export.Name != "" {
				v.bad(at, "a second export "+quote(export.Name), "a name of its own in the group "+group.Name, "")
			}
			if strings.ContainsAny(export.Name, ", \t\n") {
				v.bad(at, quote(export.Name), "a name without blanks and commas", "compExports is a list with commas")
			}
			names[export.Name] = true
		}
	}
}

// exportRefs checks that compExports and appExports name exports, and that their templates can be filled.
func (v *validation) exportRefs() {
	used, named := map[ExportRef]bool{}, map[ExportRef]bool{}
	for i, c := range v.app.Components {
		for list, refs := range map[string][]ExportRef{"comp_exports": c.CompExports, "app_exports": c.AppExports} {
			for n, ref := range refs {
				named[ref] = true
				export, ok := v.app.Export(ref)
				if !ok {
					v.unknownExport(v.app.componentPlace(i, list, strconv.Itoa(n)), ref)
					continue
				}
				if list == "comp_exports" {
					used[ref] = true
					v.template(v.exportPlace(ref), i, export.Value, v.isAddress(c, ref))
				}
			}
		}
		for n, export := range c.ComponentExports {
			v.template(v.app.componentPlace(i, "component_exports", strconv.Itoa(n), "value"), i, export.Value, false)
		}
	}
	for _, group := range v.app.ExportGroups {
		for _, export := range group.Exports {
			ref := ExportRef{Group: group.Name, Name: export.Name}
			if !used[ref] {
				v.template(v.exportPlace(ref), -1, export.Value, false)
			}
			if !named[ref] {
				v.unpublished(ref, export)
			}
		}
	}
}

// unpublished warns of an export with the host of a component that neither compExports nor appExports names.
func (v *validation) unpublished(ref ExportRef, export Export) {
	for _, name := range Placeholders(export.Value) {
		host, isHost := strings.CutSuffix(name, hostSuffix)
		i := slices.IndexFunc(v.app.Components, func(c Component) bool {
			return c.Name == host || strings.ToUpper(c.Name) == host
		})
		if isHost && i >= 0 {
			v.warn(v.exportPlace(ref), "the export "+quote(ref.String())+", which no component publishes",
				ref.String()+" in the compExports of "+v.app.Components[i].Name, "")
			return
		}
	}
}

// isAddress tells whether an export is where the app's framework finds the component's instances.
func (v *validation) isAddress(c Component, ref ExportRef) bool {
	return v.app.Settings.Framework != "none" && ref == c.Settings.ClusterExport
}

func (v *validation) exportPlace(ref ExportRef) Place {
	for g, group := range v.app.ExportGroups {
		for e, export := range group.Exports {
			if group.Name == ref.Group && export.Name == ref.Name {
				return v.app.place("export_groups", strconv.Itoa(g), "exports", strconv.Itoa(e), "value")
			}
		}
	}
	return v.app.place("export_groups")
}

func (v *validation) unknownExport(at Place, ref ExportRef) {
	var groups []string
	for _, group := range v.app.ExportGroups {
		groups = append(groups, group.Name)
		if group.Name != ref.Group {
			continue
		}
		var names []string
		for _, export := range group.Exports {
			names = append(names, group.Name+"-"+export.Name)
		}
		v.bad(at, quote(ref.String()), OneOf(names, "an export of the group "+group.Name),
			didYouMean(ref.String(), names))
		return
	}
	v.bad(at, quote(strings.TrimSuffix(ref.String(), "-")), "GROUP-EXPORT of "+OneOf(groups, "an export group"),
		didYouMean(ref.Group, groups))
}

// template checks an export's placeholders; component is the index of the component that publishes it, or -1. One
// without a value stays as written, as under Slider; in the address of a cluster's member it is a problem.
func (v *validation) template(at Place, component int, text string, address bool) {
	report, stays := v.warn, "it is published as written"
	if address {
		report, stays = v.bad, "others find this component by the export"
	}
	for _, name := range Placeholders(text) {
		dict, key, refers := siteKeyIn(name, v.app.Defaults)
		switch {
		case refers && !v.defined(component, dict, key):
			report(at, "${"+name+"}, which is not defined", "a value of appConfig",
				cmp.Or(didYouMean(name, v.siteNames()), stays))
		case !refers && !v.known(name):
			report(at, "the unknown placeholder ${"+name+"}", "${C_HOST} of a component C, or ${site.<dict>.<key>}",
				cmp.Or(v.meant(name), stays))
		}
	}
}
