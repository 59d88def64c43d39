package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// configWarnings warns about configuration that probably does not mean what its author meant, although the instance
// runs.
func (b *builder) configWarnings() {
	b.portWarnings()
	b.clientWarnings()
	b.addressWarning()
	if names := UnreadProperties(*b.component); len(names) > 0 {
		b.warn(b.key("muster.formats.conf."+names[0]), strings.Join(names, ", "),
			"a class of yours as muster.inputs.format or muster.outputs.format", "nothing else reads such properties")
	}
}

// addressWarning warns about a chief or worker that TensorFlow cannot find, while others have an address.
func (b *builder) addressWarning() {
	role := b.component.Settings.Role
	if b.app.Settings.Framework != "tensorflow" || role == appdef.RoleService || role == appdef.RoleEvaluator ||
		b.component.Settings.ClusterExport != (appdef.ExportRef{}) {
		return
	}
	if slices.ContainsFunc(b.app.Components, func(c appdef.Component) bool {
		return c.Settings.ClusterExport != appdef.ExportRef{}
	}) {
		b.warn(b.at("comp_exports"), "no export of the form host:port", "one, as the other components have",
			"without it "+b.component.Name+" is not in TensorFlow's cluster")
	}
}

// portWarnings warns about values without {PER_CONTAINER}: all instances then get the same number, as in Slider, and
// that fails if two of them share a host.
func (b *builder) portWarnings() {
	if b.component.Instances < 2 {
		return
	}
	for _, need := range b.app.PortNeeds(b.component.Name) {
		if slices.ContainsFunc(need.Claims, func(c appdef.PortClaim) bool { return !c.PerContainer }) {
			b.warn(b.dictKey(need.Key), appdef.Quote(need.Text), "{PER_CONTAINER} behind the port",
				"instances on one host cannot share a number: those after the first get another")
		}
	}
}

// clientWarnings warns about values with names that only a Hadoop client knows and nobody has set. They are empty; a
// command that uses one is a problem.
func (b *builder) clientWarnings() {
	for _, key := range slices.Sorted(maps.Keys(b.component.Config)) {
		value := b.component.Config[key]
		if !strings.HasPrefix(key, "site.") || !strings.Contains(value, "${") {
			continue
		}
		for _, name := range appdef.ClientNames() {
			if _, known := b.scope.Lookup(name); !known && strings.Contains(value, "${"+name+"}") {
				b.warn(b.key(key), "${"+name+"}, which has no value here", "a value for "+name,
					"it is empty in a configuration, and as written in an export; give --set "+name+"=VALUE")
			}
		}
	}
}
