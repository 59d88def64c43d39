package slider

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// Write is the App as the documents of a package: metainfo.json, appConfig.json and resources.json. Load of them gives
// the App again, from whatever dialect it came; unsupported describes what they cannot express, sorted. The
// other files of a package are no part of an App.
func Write(app appdef.App) (files map[string][]byte, unsupported []string) {
	w := writing{app: &app}
	files = map[string][]byte{
		"metainfo.json":  indented(w.metainfo()),
		"appConfig.json": indented(w.appConfig()),
		"resources.json": indented(w.resources()),
	}
	slices.Sort(w.unsupported)
	return files, slices.Compact(w.unsupported)
}

// writing is one Write.
type writing struct {
	app         *appdef.App
	unsupported []string
}

func (w *writing) cannot(text string) { w.unsupported = append(w.unsupported, text) }

func (w *writing) metainfo() Metainfo {
	a := w.app
	out := &Application{
		Name: Text(a.Name), Comment: Text(a.Comment), Version: Text(a.Release),
		ExportedConfigs: listOf(a.ExportedConfigs),
		ConfigFiles:     dictionaries(a.ConfigFiles), Components: []Component{},
	}
	for _, g := range a.ExportGroups {
		out.ExportGroups = append(out.ExportGroups, ExportGroup{Name: Text(g.Name), Exports: exports(g.Exports)})
	}
	for _, o := range a.CommandOrders {
		var requires []string
		for _, r := range o.Requires {
			requires = append(requires, r.Component+"-"+r.State)
		}
		out.CommandOrders = append(out.CommandOrders, CommandOrder{
			Command:  Text(o.Component + "-" + o.Command),
			Requires: listOf(requires),
		})
	}
	for _, p := range a.Packages {
		out.Packages = append(out.Packages, Package{Type: Text(p.Type), Name: Text(p.Name)})
	}
	for i := range a.Components {
		out.Components = append(out.Components, w.component(&a.Components[i]))
	}
	for _, addon := range a.Addons {
		w.cannot("the add-on " + addon.Name + ": an add-on is a package of its own")
	}
	for _, place := range slices.Sorted(maps.Keys(a.Kept)) {
		w.cannot(place + ": it is kept and not acted upon")
	}
	schema := a.Schema
	if schema != "2.0" || len(a.Packages) > 0 { // 2.0 has no packages: there they came from osSpecifics
		schema = "2.1"
	}
	return Metainfo{SchemaVersion: Text(schema), Application: out}
}

func (w *writing) component(c *appdef.Component) Component {
	out := Component{
		Name: Text(c.Name), Category: Text(c.Category), PublishConfig: truth(c.PublishConfig),
		AutoStartOnFailure: truth(c.AutoStart),
		AppExports:         listOf(refs(c.AppExports)), CompExports: listOf(refs(c.CompExports)),
		ComponentExports: exports(c.ComponentExports),
		ConfigFiles:      dictionaries(c.ConfigFiles),
	}
	if c.MinInstances > 0 {
		out.MinInstanceCount = Whole(strconv.Itoa(c.MinInstances))
	}
	if c.MaxInstances >= 0 {
		out.MaxInstanceCount = Whole(strconv.Itoa(c.MaxInstances))
	}
	if s := c.CommandScript; s != nil {
		out.CommandScript = &CommandScript{
			Script: Text(s.Script), ScriptType: Text(s.Type),
			Timeout: Whole(strconv.FormatFloat(float64(s.Timeout), 'f', -1, 64)),
		}
	}
	for _, one := range c.Commands {
		out.Commands = append(out.Commands, Command{Name: Text(one.Name), Exec: Text(one.Exec), Type: Text(one.Type)})
	}
	return out
}

// level is one section; a value may be null, because JSON null is a value of some keys.
type level map[string]any

// tree is a ConfTree whose values may be null.
type tree struct {
	Schema     string           `json:"schema"`
	Metadata   map[string]any   `json:"metadata"`
	Global     level            `json:"global"`
	Components map[string]level `json:"components"`
}

func newTree() tree {
	return tree{
		Schema: "http://example.org/specification/v2.0.0", Metadata: map[string]any{}, Global: level{},
		Components: map[string]level{},
	}
}

func (w *writing) appConfig() tree {
	t := newTree()
	for key, text := range w.app.Config {
		t.Global[key] = value(key, text)
	}
	// package/configuration/<dict>.xml, which is no document of the definition
	for dict, values := range w.app.Defaults {
		for key, text := range values {
			if name := "site." + dict + "." + key; t.Global[name] == nil {
				t.Global[name] = text
			}
		}
	}
	if w.app.Dialect != "slider" {
		t.Global["muster.dialect"] = w.app.Dialect
	}
	for i := range w.app.Components {
		c := &w.app.Components[i]
		own := ownValues(c.Config, w.app.Config)
		w.derived(c, own)
		if len(own) > 0 {
			t.Components[c.Name] = own
		}
	}
	w.sources(t)
	return t
}

// sources writes where the values of a tree come from that are an administrator's defaults.
func (w *writing) sources(t tree) {
	site := map[string]string{}
	for key, from := range w.app.Site {
		component, name := "", key
		for other := range t.Components {
			if rest, ok := strings.CutPrefix(key, other+"."); ok {
				component, name = other, rest
			}
		}
		section := t.Global
		if component != "" {
			section = t.Components[component]
		}
		if _, ok := section[name]; ok {
			site[key] = from
		}
	}
	if len(site) > 0 {
		t.Metadata[siteField] = site
	}
}

// derived writes as keys what a component has from elsewhere: a docker container's image, a credential's secret.
func (w *writing) derived(c *appdef.Component, own level) {
	written := func(key string) bool { return c.Config[key] != "" || c.Resources[key] != "" }
	if c.Limits.Image != "" && !written("muster.image") {
		own["muster.image"] = c.Limits.Image
	}
	for name, ref := range c.Settings.Secrets {
		if key := "muster.secret." + name; !written(key) {
			own[key] = ref
		}
	}
}

func (w *writing) resources() tree {
	t := newTree()
	for key, text := range w.app.Resources {
		t.Global[key] = value(key, text)
	}
	for i := range w.app.Components {
		c := &w.app.Components[i]
		own := ownValues(c.Resources, w.app.Resources)
		own[instancesKey] = strconv.Itoa(c.Instances)
		own[priorityKey] = strconv.Itoa(c.Priority)
		t.Components[c.Name] = own
	}
	w.sources(t)
	return t
}

// ownValues are those of a component that differ from the global section.
func ownValues(merged, global map[string]string) level {
	own := level{}
	for key, text := range merged {
		if have, ok := global[key]; !ok || have != text {
			own[key] = value(key, text)
		}
	}
	return own
}

// value is a text, or null where the key takes that: a section of an App has the word.
func value(key, text string) any {
	if text != "null" {
		return text
	}
	for _, k := range appdef.Keys() {
		if k.Name == key && k.Null() {
			return nil
		}
	}
	return text
}

func exports(list []appdef.Export) (out []Export) {
	for _, e := range list {
		out = append(out, Export{Name: Text(e.Name), Value: Text(e.Value)})
	}
	return out
}

func refs(list []appdef.ExportRef) (names []string) {
	for _, r := range list {
		names = append(names, r.String())
	}
	return names
}

func dictionaries(list []appdef.ConfigFile) (out []ConfigFile) {
	for _, f := range list {
		out = append(out, ConfigFile{
			Type: Text(f.Type), FileName: Text(f.FileName),
			DictionaryName: Text(f.Dictionary),
		})
	}
	return out
}

func listOf(names []string) List { return List(strings.Join(names, ",")) }

func truth(yes bool) Truth {
	if yes {
		return "true"
	}
	return ""
}

// indented is a document for people: `<`, `>` and `&` stay as they are.
func indented(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic("slider: encode a document: " + err.Error()) // texts, lists and maps of them
	}
	return b.Bytes()
}
