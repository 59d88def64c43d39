package slider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
)

// The JSON Schemas of the three documents are made here and not in the program: who writes a package has an
// editor that reads doc/schema, and the agent has no use for them. The types and the tables of the
// loader are all they are made of.

var documents = []string{"metainfo", "appconfig", "resources"}

// TestSchema holds doc/schema to the types.
func TestSchema(t *testing.T) {
	for _, name := range documents {
		want := schema(t, name)
		file := "../../doc/schema/" + name + ".schema.json"
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), string(want)); diff != "" {
			t.Errorf("%s is not what the types say (-update writes it anew): -have +want\n%s", file, diff)
		}
	}
}

// Every document of the repository's packages is valid, and every one that is broken here is not.
func TestSchemaJudges(t *testing.T) {
	schemas := map[string]*validator.Schema{}
	for _, name := range documents {
		schemas[name] = compile(t, name)
	}
	seen := 0
	for _, dir := range []string{"../../packages/catalog", "../../tests/packages", "testdata/base"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			name, ok := documentOf(filepath.Base(path))
			if err != nil || !ok || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			seen++
			if err := schemas[name].Validate(standard(t, data)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 14 {
		t.Errorf("%d documents, want those of four packages and more", seen)
	}
	const conf = `"schema": "http://example.org/specification/v2.0.0"`
	for _, test := range []struct {
		document, text string
		valid          bool
		at             string // where it is broken
	}{
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": [{"name": "a", "minInstanceCount": 1, "autoStartOnFailure": "True"}]}}`, true, ""},
		{"metainfo", `{"schemaVersion": "2.1", "applicationPackage": {"name": "x", "components": [{"name": "ALL"}]}}`, true, ""},
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": [{"name": "a", "category": "Master"}]}}`, false, "/application/components/0/category"},
		{"metainfo", `{"schemaVersion": "3.0", "application": {"components": [{"name": "a"}]}}`, false, "/schemaVersion"},
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": [{"name": "a", "commandScrpt": {}}]}}`, false, "/application/components/0"},
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": [{"name": "a", "minInstanceCount": "one"}]}}`, false, "/application/components/0/minInstanceCount"},
		{"metainfo", `{"schemaVersion": 2.1, "application": {"components": [{"name": "a"}]}}`, true, ""},
		{"metainfo", `{"schemaVersion": 2.2, "application": {"components": [{"name": "a"}]}}`, false, "/schemaVersion"},
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": [{"name": "a/b"}]}}`, false, "/application/components/0/name"},
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": [{"name": "a", "commandScript": {"script": ""}}]}}`, false, "/application/components/0/commandScript/script"},
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": []}}`, false, "/application/components"},
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": [{"category": "SLAVE"}]}}`, false, "/application/components/0"},
		{"metainfo", `{"schemaVersion": "2.1", "application": {"components": [{"name": "a"}], "commandOrders": [{"command": "a-STOP", "requires": "a-STARTED"}]}}`, false, "/application/commandOrders/0/command"},
		{"appconfig", `{` + conf + `, "global": {"site.global.x": 1, "muster.complete.minFailed": null, "anything": "x"}, "components": {"a": {"site.d.k.e": true}}}`, true, ""},
		{"appconfig", `{` + conf + `, "credentials": {"jceks://x": ["a"]}}`, true, ""},
		{"appconfig", `{` + conf + `, "credentials": {"jceks://x": "a"}}`, false, "/credentials/jceks:~1~1x"},
		{"appconfig", `{` + conf + `, "global": {"muster.framework": "tensorflw"}}`, false, "/global/muster.framework"},
		{"appconfig", `{` + conf + `, "global": {"muster.framwork": "none"}}`, false, "/global"},
		{"appconfig", `{` + conf + `, "global": {"muster.env.A": {}}}`, false, "/global/muster.env.A"},
		{"appconfig", `{` + conf + `, "global": {"muster.shm": null}}`, false, "/global/muster.shm"},
		{"appconfig", `{` + conf + `, "components": {"a": {"muster.timeout": "1h"}}}`, false, "/components/a"},
		{"appconfig", `{` + conf + `, "components": {"a": {"yarn.memory": "1"}}}`, false, "/components/a"},
		{"appconfig", `{"schema": "v1"}`, false, "/schema"},
		{"resources", `{` + conf + `, "components": {"a": {"yarn.memory": "max", "yarn.vcores": 2, "yarn.whatever": "x", "muster.gpu.type": "V100", "yarn.io/gpu": 1}}}`, true, ""},
		{"resources", `{` + conf + `, "components": {"a": {"yarn.container.failure.threshold": "-1"}}}`, true, ""},
		{"resources", `{` + conf + `, "components": {"a": {"yarn.container.failure.threshold": "few"}}}`, false, "/components/a/yarn.container.failure.threshold"},
		{"resources", `{` + conf + `, "components": {"a": {"yarn.memory": "2g"}}}`, false, "/components/a/yarn.memory"},
		{"resources", `{` + conf + `, "components": {"a": {"yarn.role.priority": "0"}}}`, false, "/components/a/yarn.role.priority"},
		{"resources", `{` + conf + `, "components": {"a": {"site.global.x": "1"}}}`, false, "/components/a"},
		{"resources", `{` + conf + `, "components": {"a": {"yarn.role.priority": []}}}`, false, "/components/a/yarn.role.priority"},
		{"resources", `{` + conf + `, "component": {}}`, false, ""},
	} {
		err := schemas[test.document].Validate(standard(t, []byte(test.text)))
		if (err == nil) != test.valid {
			t.Errorf("%s %s: got %v, want valid: %v", test.document, test.text, err, test.valid)
		}
		if bad, ok := errors.AsType[*validator.ValidationError](err); ok && !slices.Contains(places(bad), test.at) {
			t.Errorf("%s %s: broken at %q, want %q", test.document, test.text, places(bad), test.at)
		}
	}
}

// No key that the schema has is unknown to the loader. Of values the loader takes more than the schema, which is for those
// who write: blanks around a number, null for nothing.
func TestSchemaAndLoaderKnowTheSameKeys(t *testing.T) {
	var walk func(s *jsonschema.Schema, defs jsonschema.Definitions, example map[string]any)
	walk = func(s *jsonschema.Schema, defs jsonschema.Definitions, example map[string]any) {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			property, list := p.Value, false
			if property.Items != nil {
				property, list = property.Items, true
			}
			name, ok := strings.CutPrefix(property.Ref, "#/$defs/")
			if !ok || defs[name].Properties == nil {
				example[p.Key] = "1"
				continue
			}
			within := map[string]any{}
			walk(defs[name], defs, within)
			example[p.Key] = within
			if list {
				example[p.Key] = []any{within}
			}
		}
	}
	s := reflectSchema(t, "metainfo")
	all := map[string]any{}
	walk(s, s.Definitions, all)
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	_, found := slider.Load(fstest.MapFS{"metainfo.json": {Data: data}}, slider.Options{})
	for _, p := range found {
		if strings.Contains(p.Got, "unknown key") {
			t.Errorf("the schema has it: %v", p)
		}
	}
	if !bytes.Contains(data, []byte("hostMount")) || len(found) == 0 {
		t.Errorf("the document has too little in it: %s", data)
	}
}

func places(err *validator.ValidationError) []string {
	at := []string{appdef.Pointer(err.InstanceLocation...)}
	for _, cause := range err.Causes {
		at = append(at, places(cause)...)
	}
	return at
}

// documentOf tells which document a file is.
func documentOf(file string) (string, bool) {
	for prefix, name := range map[string]string{"metainfo.": "metainfo", "appConfig": "appconfig", "resources": "resources"} {
		if strings.HasPrefix(file, prefix) && strings.HasSuffix(file, ".json") {
			return name, true
		}
	}
	return "", false
}

// standard is a document without comments, as the validator reads it.
func standard(t *testing.T, data []byte) any {
	t.Helper()
	plain, err := hujson.Standardize(bytes.Clone(data))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := validator.UnmarshalJSON(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func compile(t *testing.T, name string) *validator.Schema {
	t.Helper()
	c := validator.NewCompiler()
	url := "file:///" + name + ".json"
	if err := c.AddResource(url, standard(t, schema(t, name))); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// schema is one document's JSON Schema, draft 2020-12, as it is published.
func schema(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(reflectSchema(t, name)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reflectSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	r := jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, Mapper: scalars}
	if err := r.AddGoComments("github.com/muster-agent/muster/appdef/slider", "./", jsonschema.WithFullComment()); err != nil {
		t.Fatal(err)
	}
	if name == "metainfo" {
		s := r.Reflect(slider.Metainfo{})
		version, _ := s.Properties.Get("schemaVersion")
		version.Enum = append(version.Enum, json.Number("2.0"), json.Number("2.1")) // a number means its letters
		for _, one := range []string{"application", "applicationPackage"} {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{one}})
		}
		return finish(s, "The metainfo of an app package: its components, how they are run and what they publish.")
	}
	s := r.Reflect(slider.ConfTree{})
	s.Definitions["Global"], s.Definitions["Component"] = sections(name)
	set := func(key string, change func(*jsonschema.Schema)) {
		p, _ := s.Properties.Get(key)
		change(p)
	}
	set("schema", func(p *jsonschema.Schema) {
		p.AnyOf, p.Extras, p.Const = nil, nil, "http://example.org/specification/v2.0.0"
	})
	set("global", func(p *jsonschema.Schema) { *p = jsonschema.Schema{Ref: "#/$defs/Global", Description: p.Description} })
	set("components", func(p *jsonschema.Schema) {
		p.AdditionalProperties = &jsonschema.Schema{Ref: "#/$defs/Component"}
		p.Properties = jsonschema.NewProperties()
		for _, outsider := range []string{"slider-appmaster", "slider-client"} { // Slider's own processes
			p.Properties.Set(outsider, &jsonschema.Schema{Type: "object", Description: "Slider's own process; it has no part in this."})
		}
	})
	about := map[string]string{"appconfig": "The appConfig of an app package: the configuration.", "resources": "The resources of an app package: how many instances, and what each may use."}
	return finish(s, about[name])
}

func finish(s *jsonschema.Schema, about string) *jsonschema.Schema {
	widen(s)
	for _, def := range s.Definitions {
		widen(def)
	}
	s.Version, s.Description = jsonschema.Version, about
	return s
}

// widen lets the types of scalars replace the one that the reflector reads a field's tags for.
func widen(s *jsonschema.Schema) {
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		for _, one := range []*jsonschema.Schema{p.Value, p.Value.AdditionalProperties, p.Value.Items} {
			if one == nil {
				continue
			}
			if one.Items != nil && one.Items.Extras != nil {
				one.Items.Type = ""
			}
			if one.Extras != nil {
				one.Type = ""
			}
		}
		if slices.Contains(s.Required, p.Key) && p.Value.Extras != nil {
			p.Value.MinLength = new(uint64(1)) // the loader takes an empty text for none
		}
	}
}

// scalar is what stands for a text: values that are numbers or true count as their letters.
func scalar(types ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Extras: map[string]any{"type": types}}
}

// scalars gives the types of texts their forms; the others are reflected.
func scalars(t reflect.Type) *jsonschema.Schema {
	var s *jsonschema.Schema
	switch t {
	case reflect.TypeFor[slider.Text]():
		s = scalar("string", "number", "boolean")
	case reflect.TypeFor[slider.List]():
		s = scalar("string")
	case reflect.TypeFor[slider.Whole]():
		s = scalar("string", "integer")
		s.Pattern = "^[0-9]+$"
	case reflect.TypeFor[slider.Truth]():
		s = scalar("string", "boolean")
		s.Pattern = "^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$"
	default:
		return nil
	}
	s.Type = "string" // until widen
	return s
}

// sections describes the global section and that of a component: Slider's keys, muster's, and what else there may be.
func sections(document string) (global, component *jsonschema.Schema) {
	global, component = section(), section()
	table, free := slider.ConfigKeys(), true // an appConfig may have any key
	if document == "resources" {
		table, free = slider.ResourceKeys(), false
	}
	for _, k := range table {
		for _, s := range []*jsonschema.Schema{global, component} {
			describe(s, k.Name, k.Default, k.Meaning, sliderValue(k))
		}
	}
	for _, k := range appdef.Keys() {
		describe(global, k.Name, k.Default, k.Meaning, musterValue(k))
		if !k.Global {
			describe(component, k.Name, k.Default, k.Meaning, musterValue(k))
		}
	}
	if free { // but none that looks like one of another kind
		for _, s := range []*jsonschema.Schema{global, component} {
			s.PropertyNames = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Not: &jsonschema.Schema{Pattern: `^muster\.`}}, names(s)}}
			s.AdditionalProperties = scalar("string", "number", "boolean")
		}
		own := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Not: &jsonschema.Schema{Pattern: `^yarn\.`}}, {Const: "yarn.io/gpu"}}} // the rest is at home in resources
		component.PropertyNames = &jsonschema.Schema{AllOf: []*jsonschema.Schema{component.PropertyNames, own}}
		return global, component
	}
	for _, s := range []*jsonschema.Schema{global, component} {
		s.PatternProperties[`^yarn\.`] = scalar("string", "number", "boolean")
	}
	return global, component
}

func section() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", Properties: jsonschema.NewProperties(), PatternProperties: map[string]*jsonschema.Schema{}, AdditionalProperties: jsonschema.FalseSchema,
	}
}

// describe adds a key, or a family of keys that ends in `*`.
func describe(s *jsonschema.Schema, name, fallback, meaning string, value *jsonschema.Schema) {
	value.Description = meaning
	if fallback != "" {
		value.Description += " (default: " + fallback + ")"
	}
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		s.PatternProperties["^"+regexp.QuoteMeta(prefix)+".+$"] = value
		return
	}
	s.Properties.Set(name, value)
}

// names is what the keys of a section that are known look like.
func names(s *jsonschema.Schema) *jsonschema.Schema {
	known := &jsonschema.Schema{}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if strings.HasPrefix(p.Key, "muster.") {
			known.Enum = append(known.Enum, p.Key)
		}
	}
	families := &jsonschema.Schema{}
	for pattern := range s.PatternProperties {
		if strings.HasPrefix(pattern, `^muster`) {
			families.AnyOf = append(families.AnyOf, &jsonschema.Schema{Pattern: pattern})
		}
	}
	slices.SortFunc(families.AnyOf, func(x, y *jsonschema.Schema) int { return strings.Compare(x.Pattern, y.Pattern) })
	return &jsonschema.Schema{AnyOf: append([]*jsonschema.Schema{known}, families.AnyOf...)}
}

func sliderValue(k slider.Key) *jsonschema.Schema {
	if !k.Whole {
		return scalar("string", "number", "boolean")
	}
	s := scalar("string", "integer")
	pattern := "[0-9]+"
	switch {
	case k.Signed:
		pattern = "[+-]?[0-9]+"
	case k.Least > 0:
		pattern, s.Minimum = "0*[1-9][0-9]*", json.Number("1")
	default:
		s.Minimum = json.Number("0")
	}
	if k.Max {
		pattern += "|max"
	}
	s.Pattern = "^(" + pattern + ")$"
	return s
}

func musterValue(k appdef.Key) *jsonschema.Schema {
	s := scalar("string", "number", "boolean")
	if k.Null() {
		s = scalar("string", "number", "boolean", "null")
	}
	for _, text := range k.Values {
		s.Enum = append(s.Enum, text)
		if text == "true" || text == "false" {
			s.Enum = append(s.Enum, text == "true")
		}
	}
	return s
}
