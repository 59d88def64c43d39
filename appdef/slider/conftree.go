package slider

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// schema is the schema that appConfig and resources must name (Slider's PersistKeys.SCHEMA).
const schema = "http://example.org/specification/v2.0.0"

// conftree is an appConfig or a resources document: a global section and one for each component.
type conftree struct {
	name       string // appConfig, resources: the document, whatever its file name
	root       cursor // its place is the document's; the node is nil when there is no document
	global     appdef.Section
	components map[string]appdef.Section
	places     map[string]appdef.Place // of the components' sections
	whole      bool                    // the document was read, or is optional and missing
	missing    bool                    // the package has no such document

	// site names the sources of values that are an administrator's defaults, by component and key as App.Site.
	site map[string]string

	credentials []credential
}

// outsider tells whether a name in appConfig or resources is no component but one of Slider's own processes.
func outsider(name string) bool { return name == "slider-appmaster" || name == "slider-client" }

func newConftree(name string, doc *document) *conftree {
	return &conftree{
		name: name, root: cursor{doc: doc, node: &node{kind: object}},
		global: appdef.Section{}, components: map[string]appdef.Section{}, places: map[string]appdef.Place{},
	}
}

// read fills the tree from the document's root.
func (t *conftree) read(l *loading, root *node) {
	t.root.node = root
	if root.kind != object {
		t.root.bad(string(root.kind), "an object", "")
		return
	}
	t.whole = true
	t.root.knows(fields[ConfTree]())
	t.schema()
	t.metadata(l)
	t.credentials = t.secrets(l)
	if global, ok := t.root.object("global"); ok {
		t.global = t.section("", global)
	}
	components, ok := t.root.object("components")
	if !ok {
		return
	}
	for _, m := range components.members {
		c := cursor{node: m.value, doc: t.root.doc, pointer: components.pointer + appdef.Pointer(m.name)}
		switch {
		case c.kind != object:
			c.bad(string(c.kind), "an object", "")
		case outsider(m.name):
			if len(c.members) > 0 {
				l.app.Kept[t.name+"#"+c.pointer] = c.value()
			}
		default:
			t.components[m.name] = t.section(m.name+".", c)
			t.places[m.name] = c.place()
		}
	}
}

func (t *conftree) schema() {
	at := t.root.at("schema")
	switch got := t.root.text("schema"); {
	case got == "" && t.root.member("schema") == nil:
		t.root.warn("no schema", appdef.Quote(schema), "it is read as that")
	case got != schema:
		t.root.doc.add(at.Problem(appdef.Quote(got), appdef.Quote(schema), ""))
	}
}

// siteField is the member of metadata that App.Site is kept in.
const siteField = "muster.site"

// metadata reads the sources of values. Slider's own metadata is kept.
func (t *conftree) metadata(l *loading) {
	c, ok := t.root.object("metadata")
	if !ok || len(c.members) == 0 {
		return
	}
	site, ok := c.get(siteField)
	if !ok || site.kind != object {
		l.app.Kept[t.name+"#"+c.pointer] = c.value()
		return
	}
	t.site = map[string]string{}
	for _, m := range site.members {
		t.site[m.name] = m.value.text
	}
}

// section reads one level: scalars by key. prefix is the component's, as in App.Site.
func (t *conftree) section(prefix string, c cursor) appdef.Section {
	section := appdef.Section{}
	for _, m := range c.members {
		at := cursor{node: m.value, doc: c.doc, pointer: c.pointer + appdef.Pointer(m.name)}
		value := appdef.Value{Text: m.value.text, Place: at.place()}
		if from, ok := t.site[prefix+m.name]; ok {
			value.File, value.Pointer, _ = strings.Cut(from, "#")
		}
		switch {
		case m.value.scalar():
			section[m.name] = value
		case m.value.kind == null && strings.HasPrefix(m.name, "muster."):
			value.Text, value.Null = "null", true
			section[m.name] = value
		default:
			at.bad(string(m.value.kind), "a text, a number, true or false", "")
		}
	}
	return section
}

// set puts a value of the command line into the tree.
func (t *conftree) set(component, key string, value appdef.Value) {
	section := t.global
	if component != "" {
		if t.components[component] == nil {
			t.components[component] = appdef.Section{}
			t.places[component] = value.Place
		}
		section = t.components[component]
	}
	section[key] = value
}

// has tells whether a key stands at any level.
func (t *conftree) has(key string) bool { return slices.Contains(t.names(), key) }

// names are the keys of all levels.
func (t *conftree) names() []string {
	names := slices.Collect(maps.Keys(t.global))
	for _, section := range t.components {
		names = slices.AppendSeq(names, maps.Keys(section))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (t *conftree) unset(component, key string) {
	if component == "" {
		delete(t.global, key)
		return
	}
	delete(t.components[component], key)
}

// strangers reports sections of components that metainfo lacks. In resources that is an error, because such a component
// would have to run. In appConfig it has no effect, and published packages have such sections.
func (t *conftree) strangers(names []string) {
	if len(names) == 0 || slices.Contains(names, "") {
		return // the fault is in metainfo
	}
	for _, name := range sortedKeys(t.components) {
		if slices.Contains(names, name) {
			continue
		}
		p := t.places[name].Problem("the unknown component "+appdef.Quote(name),
			appdef.OneOf(names, "a component of metainfo"), appdef.DidYouMean(name, names))
		if t.name == "appConfig" {
			p.Severity = appdef.SeverityWarning
			p.Hint = orElse(p.Hint, "it has no effect")
			if t.components[name]["site.global.component_type"].Text == "external_app" {
				p.Hint = "an external app is no part of this one: create it by itself"
			}
		}
		t.root.doc.add(p)
	}
}

const gpuKey = "yarn.io/gpu"

// appConfigKeys reports keys that do not belong into appConfig, and that have no effect here.
// declared are the dictionaries.
func (t *conftree) appConfigKeys(declared map[string]bool) {
	for _, section := range append(slices.Collect(maps.Values(t.components)), t.global) {
		if v, ok := section[generationKey]; ok && strings.EqualFold(v.Text, "true") {
			t.root.doc.add(v.Warning(generationKey, "scripts that write the files of configFiles, as by PropertiesFile",
				"here nobody else writes them: Slider's application master did"))
		}
	}
	for key, v := range t.global {
		t.withoutSite(key, v, declared)
		if strings.HasPrefix(key, "yarn.") && key != gpuKey {
			t.root.doc.add(v.Warning("the key "+key+" in appConfig", "it in resources", "it has no effect here"))
		}
	}
	for _, section := range t.components {
		for key, v := range section {
			t.withoutSite(key, v, declared)
			if strings.HasPrefix(key, "yarn.") && key != gpuKey {
				t.root.doc.add(v.Problem("the key "+key+" in a component of appConfig", "it in resources", ""))
			}
		}
	}
}

// withoutSite reports a key that begins with a dictionary, DICTIONARY.KEY: nobody is told its value.
func (t *conftree) withoutSite(key string, v appdef.Value, declared map[string]bool) {
	// Slider's and muster's own keys begin with these; a dictionary may be called so, too.
	own := []string{"agent", "am", "application", "component", "env", "muster", "role", "site", "yarn", "zookeeper"}
	if dict, rest, _ := strings.Cut(key, "."); rest != "" && declared[dict] && !slices.Contains(own, dict) {
		t.root.doc.add(v.Warning("the key "+appdef.Quote(key), "a key of the configuration: site.DICTIONARY.KEY",
			"did you mean site."+key+"?"))
	}
}

// resourcesKeys reports keys that do not belong into resources, and misspelt keys of Slider.
func (t *conftree) resourcesKeys() {
	names := resourceNames()
	check := func(section appdef.Section) {
		for key, v := range section {
			switch {
			case strings.HasPrefix(key, "muster."), slices.Contains(names, key):
			case !strings.HasPrefix(key, "yarn."):
				t.root.doc.add(v.Problem("the key "+appdef.Quote(key)+" in resources",
					"a key that starts with yarn. or muster.", "configuration belongs to appConfig"))
			default:
				if near, ok := appdef.Nearest(key, names); ok {
					t.root.doc.add(v.Warning("unknown key "+appdef.Quote(key), "a key that Slider knows",
						"did you mean "+near+"?"))
				}
			}
		}
	}
	check(t.global)
	for _, section := range t.components {
		check(section)
	}
}

const (
	priorityKey  = "yarn.role.priority"
	instancesKey = "yarn.component.instances"
	memoryKey    = "yarn.memory"
	vcoresKey    = "yarn.vcores"
	labelKey     = "yarn.label.expression"
	placementKey = "yarn.component.placement.policy"
	thresholdKey = "yarn.container.failure.threshold"
	windowKey    = "yarn.container.failure.window."
	includeKey   = "yarn.log.include.patterns"
	excludeKey   = "yarn.log.exclude.patterns"
)
