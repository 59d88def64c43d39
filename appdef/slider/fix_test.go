package slider_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tailscale/hujson"

	"github.com/muster-agent/muster/appdef/slider"
)

const v2 = `"schema": "http://example.org/specification/v2.0.0"`

func TestFix(t *testing.T) {
	for _, test := range []struct{ name, file, before, after string }{
		{"nothing", "metainfo.json", `{"schemaVersion": "2.1", "application": {"name": "x"}}`, ""},
		{
			"keys, case and comments", "metainfo.json", `{
  // about
  "schemaVersion": "2.1", /* kept */
  "applicatin": {
    "name": "x",
    "components": [{"name": "a", "categry": "master", "commands": [{"exec": "x", "type": "shell"}], "commandScript": {"scrpt": "a"}},],
  },
}
`, `{
  // about
  "schemaVersion": "2.1", /* kept */
  "application": {
    "name": "x",
    "components": [{"name": "a", "category": "MASTER", "commands": [{"exec": "x", "type": "SHELL"}], "commandScript": {"script": "a"}},],
  },
}
`,
		},
		{"no version", "metainfo.json", "{\n  \"application\": {}\n}\n", "{\n  \"schemaVersion\": \"2.1\",\n  \"application\": {}\n}\n"},
		{"no version under a comment", "metainfo.json", "{ // why\n  \"application\": {}}", "{\n  \"schemaVersion\": \"2.1\", // why\n  \"application\": {}}"},
		{"no version beside a comment", "metainfo.json", "{/* why */\"application\": {}}", `{"schemaVersion": "2.1",/* why */"application": {}}`},
		{"an empty document", "metainfo.json", `{}`, `{"schemaVersion": "2.1"}`},
		{"a slip in the version's name", "metainfo.json", `{"schemaVerson": "2.0", "application": {}}`, `{"schemaVersion": "2.0", "application": {}}`},
		{"the key is there already", "metainfo.json", `{"schemaVersion": "2.1", "application": {"name": "x", "naem": "y"}}`, ""},
		{"docker in either case", "metainfo.json", `{"schemaVersion": "2.1", "application": {"components": [{"name": "a", "type": "Docker"}]}}`, ""},
		{
			"values", "appConfig.json", `{` + v2 + `, "global": {"a": 1, "muster.complete.minFailed": null, "b": true, "muster.framwork": "none", "muster.env.X": "1"}}`,
			`{` + v2 + `, "global": {"a": "1", "muster.complete.minFailed": null, "b": "true", "muster.framework": "none", "muster.env.X": "1"}}`,
		},
		{
			"resources", "resources.default.json", `{"components": {"a": {"yarn.memroy": 256, "yarn.io/gpu": "1", "yarn.other.thing": "x", "muster.shmm": "1"}, "slider-appmaster": {"x": 1}}}`,
			`{` + v2 + `,"components": {"a": {"yarn.memory": "256", "yarn.io/gpu": "1", "yarn.other.thing": "x", "muster.shm": "1"}, "slider-appmaster": {"x": 1}}}`,
		},
		{"a key of the app in a component", "appConfig.json", `{` + v2 + `, "components": {"a": {"muster.timeout": "1"}}}`, ""},
		{"marks", "appConfig-default.json", "\ufeff{" + v2 + ",\r\n\"global\": {}}\r\n", "{" + v2 + ",\n\"global\": {}}\n"},
		{"what cannot be read", "appConfig.json", "{\"a\": 1,, }\r\n", "{\"a\": 1,, }\n"},
		{"a list", "appConfig.json", "[1]", ""},
		{"xml", "metainfo.xml", "\ufeff<metainfo>\r\n</metainfo>", "<metainfo>\n</metainfo>"},
		{"a script", "package/scripts/a.py", "#!/usr/bin/python\r\npass\r\n", "#!/usr/bin/python\npass\n"},
		{"another file", "package/files/data.csv", "a\r\n", ""},
		{"no document of the package", "package/files/metainfo.json", `{"application": {}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := slider.Fix(test.file, []byte(test.before))
			want := test.after
			if want == "" {
				want = test.before
			}
			if got := string(f.After); got != want || string(f.Before) != test.before {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if (len(f.Changes) > 0) != (want != test.before) {
				t.Errorf("changes: %q", f.Changes)
			}
		})
	}
}

// What Fix mends the loader no longer reports.
func TestFixedLoads(t *testing.T) {
	files := fstest.MapFS{
		"metainfo.json":  {Data: []byte(`{"application": {"name": "x", "verson": "1", "components": [{"name": "a", "category": "Slave", "commnds": [{"exec": "true"}]}]}}`)},
		"resources.json": {Data: []byte(`{"components": {"a": {"yarn.role.priorty": 1, "yarn.component.instances": 1}}}`)},
	}
	if _, found := slider.Load(files, slider.Options{Strict: true}); len(found) < 5 {
		t.Fatalf("problems: %v", found)
	}
	for name, file := range files {
		file.Data = slider.Fix(name, file.Data).After
	}
	if _, found := slider.Load(files, slider.Options{Strict: true}); len(found) > 0 {
		t.Errorf("problems: %v\n%s\n%s", found, files["metainfo.json"].Data, files["resources.json"].Data)
	}
}

// Law: what can be read can be read when it is fixed, and then there is nothing to fix.
func FuzzFix(f *testing.F) {
	names := []string{"metainfo.json", "appConfig.json", "resources.json", "metainfo.xml"}
	for i, text := range []string{
		"{ // why\n  \"applicatin\": {\"components\": [{\"categry\": \"master\"}]}}", `{"global": {"muster.framwork": 1}, "components": {"a": {"muster.env.A": true}}}`,
		`{"components": {"a": {"yarn.memroy": 2}}}`, "\ufeff\ufeff{}\r\r\n", "{/*x*/}", "[]", "{\"application\":{\"naem\":1,\"name\":2}} // end",
	} {
		f.Add(byte(i), text)
	}
	f.Fuzz(func(t *testing.T, which byte, text string) {
		name := names[int(which)%len(names)]
		fixed := slider.Fix(name, []byte(text))
		if again := slider.Fix(name, fixed.After); len(again.Changes) > 0 || string(again.After) != string(fixed.After) {
			t.Errorf("fixed again: %q\n%q\n%q", again.Changes, fixed.After, again.After)
		}
		read := func(data []byte) bool {
			_, err := hujson.Parse(slices.Concat([]byte(strings.TrimPrefix(string(data), "\ufeff")), []byte("\n")))
			return err == nil
		}
		if strings.HasSuffix(name, ".json") && read([]byte(text)) && !read(fixed.After) {
			t.Errorf("cannot be read any more:\n%q\n%q", text, fixed.After)
		}
	})
}
