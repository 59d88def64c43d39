package appdef

import (
	"maps"
	"slices"
	"strconv"
)

// Draft is a definition of another dialect in the making: its parts in the keys of appConfig and resources, each value
// with its place. Finish makes the App, by the same rules as for a package.
type Draft struct {
	App   App
	found Problems
	src   Sources
}

// NewDraft starts a definition.
func NewDraft(dialect, name string, at Place) *Draft {
	return &Draft{
		App: App{
			Name: name, Dialect: dialect, Schema: "2.1", Kept: map[string]any{},
			Provenance: Provenance{
				Vars: map[string]string{}, Origins: map[string]string{}, Site: map[string]string{},
				Places: map[string]Place{"": at, "/name": at},
			},
		},
		src: Sources{
			Config: Section{}, Resources: Section{},
			ComponentConfig: map[string]Section{}, ComponentResources: map[string]Section{},
		},
	}
}

// The limits of an instance if the definition sets none.
const (
	DefaultMemoryMB = 256
	DefaultVCores   = 1
)

// Add adds a component with that many instances, by default of 256 MB and one core. The pointer is valid until the next
// Add.
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

// Set sets a key of appConfig; component is empty for global.
func (d *Draft) Set(component, key, text string, at Place) {
	d.section(d.src.Config, d.src.ComponentConfig, component)[key] = Value{Text: text, Place: at}
}

// SetNull sets a key to JSON's null.
func (d *Draft) SetNull(component, key string, at Place) {
	d.section(d.src.Config, d.src.ComponentConfig, component)[key] = Value{Null: true, Place: at}
}

// Resource sets a key of resources. It also sets the fields of a component's Limits that are no `muster.*` keys.
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

// Found adds problems of the dialect itself.
func (d *Draft) Found(problems ...Problem) { d.found = append(d.found, problems...) }

// Override applies the changes of the command line: --set, then --instances.
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

// The keys of resources with fields of Component.
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

// grant sets a field of a component that the command line changes; without a component, of all.
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

// Finish merges, settles and validates. It returns all problems, sorted; warnings are also in App.Warnings.
func (d *Draft) Finish() (App, Problems) {
	a := &d.App
	for i := range a.Components {
		c := &a.Components[i]
		resources := d.section(d.src.Resources, d.src.ComponentResources, c.Name)
		resources[memoryKey] = Value{Text: limitText(c.Limits.MemoryMB), Place: resources[memoryKey].Place}
		resources[vcoresKey] = Value{Text: limitText(c.Limits.VCores), Place: resources[vcoresKey].Place}
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

// limitText is a limit as resources has it.
func limitText(n int) string {
	if n == Max {
		return "max"
	}
	return strconv.Itoa(n)
}

// merge takes the texts of a section and their places. A count becomes a component's Instances, not a resource.
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
