package appdef

import (
	"maps"
	"slices"
	"strconv"
)

// Draft is a definition on its way from another dialect: what its parts say in the keys of appConfig and resources,
// each value with the place where it was written. Finish makes the App of it, by the same rules as a package's.
type Draft struct {
	App   App
	found Problems
	src   Sources
}

// NewDraft begins a definition.
func NewDraft(dialect, name string, at Place) *Draft {
	return &Draft{
		App: App{
			Name: name, Dialect: dialect, Schema: "2.1", Kept: map[string]any{},
			Provenance: Provenance{
				Vars: map[string]string{}, Origins: map[string]string{},
				Places: map[string]Place{"": at, "/name": at},
			},
		},
		src: Sources{
			Config: Section{}, Resources: Section{},
			ComponentConfig: map[string]Section{}, ComponentResources: map[string]Section{},
		},
	}
}

// What an instance may use where the definition does not say it.
const (
	DefaultMemoryMB = 256
	DefaultVCores   = 1
)

// Add adds a component with so many instances, by default of 256 MB and one core. The pointer is good until the next
// one.
func (d *Draft) Add(name string, instances int, at Place) *Component {
	i := len(d.App.Components)
	d.App.Components = append(d.App.Components, Component{
		Name: name, Category: "MASTER", Type: "STANDARD", Instances: instances, MaxInstances: -1, Priority: i + 1,
		Limits: Limits{MemoryMB: DefaultMemoryMB, VCores: DefaultVCores},
	})
	for _, part := range []string{"name", "instances", "priority"} {
		d.App.Places[Pointer("components", strconv.Itoa(i), part)] = at
	}
	return &d.App.Components[i]
}

// Set gives a key of appConfig; component is empty for global.
func (d *Draft) Set(component, key, text string, at Place) {
	d.section(d.src.Config, d.src.ComponentConfig, component)[key] = Value{Text: text, Place: at}
}

// SetNull gives a key JSON's null.
func (d *Draft) SetNull(component, key string, at Place) {
	d.section(d.src.Config, d.src.ComponentConfig, component)[key] = Value{Null: true, Place: at}
}

// Resource gives a key of resources. What a component's Limits hold beside `muster.*` keys is set there as well.
func (d *Draft) Resource(component, key, text string, at Place) {
	d.section(d.src.Resources, d.src.ComponentResources, component)[key] = Value{Text: text, Place: at}
}

func (d *Draft) section(global Section, components map[string]Section, component string) Section {
	if component == "" {
		return global
	}
	if components[component] == nil {
		components[component] = Section{}
	}
	return components[component]
}

// Export publishes `${COMPONENT_HOST}:<port>` and the like of a component, in the group of its name.
func (d *Draft) Export(component, name, template string) {
	c := d.App.Component(component)
	ref := ExportRef{Group: component, Name: name}
	i := slices.IndexFunc(d.App.ExportGroups, func(g ExportGroup) bool { return g.Name == component })
	if i < 0 {
		d.App.ExportGroups = append(d.App.ExportGroups, ExportGroup{Name: component})
		i = len(d.App.ExportGroups) - 1
	}
	d.App.ExportGroups[i].Exports = append(d.App.ExportGroups[i].Exports, Export{Name: name, Value: template})
	c.CompExports = append(c.CompExports, ref)
}

// Found notes problems of the dialect itself.
func (d *Draft) Found(problems ...Problem) { d.found = append(d.found, problems...) }

// Override applies what the command line changes: --set, then --instances.
func (d *Draft) Override(set, instances []string) {
	var all []Change
	for _, arg := range set {
		c, ok, found := ParseSet(arg, d.App.ComponentNames())
		if d.Found(found...); ok {
			all = append(all, c)
		}
	}
	for _, arg := range instances {
		changes, found := ParseInstances(arg, d.App.ComponentNames())
		d.Found(found...)
		all = append(all, changes...)
	}
	for _, c := range all {
		d.change(c)
	}
}

// The keys of resources that a Component's own fields hold.
const (
	memoryKey   = "yarn.memory"
	vcoresKey   = "yarn.vcores"
	priorityKey = "yarn.role.priority"
)

func (d *Draft) change(c Change) {
	if c.Client {
		d.App.Vars[c.Key] = c.Text
		return
	}
	into := d.section(d.src.Config, d.src.ComponentConfig, c.Component)
	other := d.section(d.src.Resources, d.src.ComponentResources, c.Component)
	if c.Resource {
		into, other = other, into
	}
	into[c.Key] = c.Value
	if c.Ours() {
		delete(other, c.Key)
	}
	if c.Resource {
		d.grant(c)
	}
}

// grant sets what the command line changes of a component's own fields; without a component, of all.
func (d *Draft) grant(c Change) {
	fields := map[string]func(*Component) *int{
		memoryKey:    func(c *Component) *int { return &c.Limits.MemoryMB },
		vcoresKey:    func(c *Component) *int { return &c.Limits.VCores },
		priorityKey:  func(c *Component) *int { return &c.Priority },
		instancesKey: func(c *Component) *int { return &c.Instances },
	}
	field, ok := fields[c.Key]
	if !ok {
		return
	}
	least := 1
	if c.Key == instancesKey {
		least = 0
	}
	n, err := ParseInt(c.Text)
	if err != nil || n < least {
		d.Found(c.Problem(quote(c.Text), "a whole number, "+strconv.Itoa(least)+" or more", ""))
		return
	}
	for i := range d.App.Components {
		if one := &d.App.Components[i]; c.Component == "" || one.Name == c.Component {
			*field(one) = n
		}
	}
}

// Finish merges, settles and validates. It answers with all problems, sorted; warnings are also in App.Warnings.
func (d *Draft) Finish() (App, Problems) {
	a := &d.App
	for i := range a.Components {
		c := &a.Components[i]
		resources := d.section(d.src.Resources, d.src.ComponentResources, c.Name)
		resources[memoryKey] = Value{Text: strconv.Itoa(c.Limits.MemoryMB), Place: resources[memoryKey].Place}
		resources[vcoresKey] = Value{Text: strconv.Itoa(c.Limits.VCores), Place: resources[vcoresKey].Place}
		resources[priorityKey] = Value{Text: strconv.Itoa(c.Priority), Place: resources[priorityKey].Place}
		for _, key := range []string{memoryKey, vcoresKey} {
			if v := resources[key]; v.File != "" {
				a.Origins[c.Name+"."+key] = v.String()
			}
		}
	}
	a.Config, a.Resources = d.merge("config", d.src.Config), d.merge("resources", d.src.Resources)
	for i := range a.Components {
		c := &a.Components[i]
		index := strconv.Itoa(i)
		c.Config = laidOver(a.Config, d.merge("config", d.src.ComponentConfig[c.Name], "components", index))
		c.Resources = laidOver(a.Resources, d.merge("resources", d.src.ComponentResources[c.Name], "components", index))
	}
	d.found = append(d.found, Settle(a, d.src)...)
	d.found = append(d.found, Validate(a)...)
	found := d.found.Sort()
	a.Warnings = found.Warnings()
	return *a, found
}

// merge takes the texts of a section and notes their places. Counts are a component's Instances, not a resource.
func (d *Draft) merge(part string, section Section, level ...string) map[string]string {
	texts := make(map[string]string, len(section))
	for key, v := range section {
		if part == "resources" && key == instancesKey {
			continue
		}
		texts[key] = v.Text
		if v.Null {
			texts[key] = "null"
		}
		if v.File != "" {
			d.App.Places[Pointer(slices.Concat(level, []string{part, key})...)] = v.Place
		}
	}
	return texts
}

func laidOver(global, own map[string]string) map[string]string {
	merged := maps.Clone(global)
	maps.Copy(merged, own)
	return merged
}
