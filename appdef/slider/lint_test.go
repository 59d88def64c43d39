package slider_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef/slider"
)

func TestLint(t *testing.T) {
	const run = `"commands": [{"exec": "true"}]`
	clean := func() fstest.MapFS {
		return small(run, run, `"global": {}`, nil)
	}
	for _, test := range []struct {
		name   string
		change func(files fstest.MapFS)
		want   string
	}{
		{"a clean package", func(fstest.MapFS) {}, ""},
		{
			"mark, CRLF and mixed blanks", func(files fstest.MapFS) {
				files["appConfig.json"].Data = []byte("\ufeff{" + v2 + ",\r\n\t\"global\": {},\r\n  \"components\": {}}")
			},
			"appConfig.json:1: got CRLF at the ends of lines, want LF; a shell reads the CR as part of a word\n" +
				"appConfig.json:1: got a byte order mark, want UTF-8 without one\n" +
				"appConfig.json:2: got tabs and blanks before lines, want one of them",
		},
		{
			"numbers", func(files fstest.MapFS) {
				files["appConfig.json"].Data = []byte(`{` + v2 + `, "global": {"a": 1, "b": true}}`)
			},
			`appConfig.json#: got values that are no texts: 2, want texts, "256" for 256; Slider has texts only; --fix writes them`,
		},
		{
			"a shell script that cannot run", func(files fstest.MapFS) {
				files["package/scripts/a.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n"), Mode: 0o644}
				files["package/scripts/b.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n"), Mode: 0o755}
				files["package/scripts/c.sh"] = &fstest.MapFile{Data: []byte("true\n"), Mode: 0o644}
			},
			"package/scripts/a.sh:1: got a script of mode 0644, want one that can be executed; chmod +x package/scripts/a.sh",
		},
		{
			"templates", func(files fstest.MapFS) {
				files["package/templates/a.j2"] = &fstest.MapFile{Data: []byte("{% if a %}\n{%- for b in c %}{{ b }}{% endfor %}{%else%}{% endif %}")}
				files["package/templates/b.j2"] = &fstest.MapFile{Data: []byte("{{ a }}\n{%- macro x() %}{% endmacro %}")}
			},
			"package/templates/b.j2:2: got {% macro %}, want {% if %} and {% for %}; without jinja2 on the host there is no more than these",
		},
		{
			"blocks of templates", func(files fstest.MapFS) {
				for name, text := range map[string]string{
					"a.j2": "{% for a in b %}\n{% if a %}x{% endif %}\n", "b.j2": "{% if a %}\n{% endfor %}{% endif %}",
					"c.j2": "{% endif %}", "d.j2": "{# {% if %} #}{{ '{% if %}' }}", "e.conf": "{% if %}",
					"f.j2": "{%- if a -%}{% elif b %}{% else %}{% for c in d %}{% else %}{% endfor %}{% endif %}",
				} {
					files["package/templates/"+name] = &fstest.MapFile{Data: []byte(text)}
				}
			},
			"package/templates/a.j2:1: got {% for %} without an end, want {% endfor %}; " +
				"the script that uses the template fails\n" +
				"package/templates/b.j2:2: got {% endfor %}, want {% endif %} of line 1 before it; " +
				"the script that uses the template fails\n" +
				"package/templates/c.j2:1: got {% endif %}, want a block that it belongs to; " +
				"the script that uses the template fails",
		},
		{
			"exports and ports", func(files fstest.MapFS) {
				files["metainfo.json"].Data = []byte(strings.Replace(string(files["metainfo.json"].Data), `"version": "1",`, `"version": "1",
					"exportGroups": [{"name": "g", "exports": [{"name": "used", "value": "${web_HOST}:${site.global.port}"}, {"name": "idle", "value": "x"}]}],`, 1))
				files["metainfo.json"].Data = []byte(strings.Replace(string(files["metainfo.json"].Data), `"name": "web",`, `"name": "web", "compExports": "g-used",`, 1))
				files["appConfig.json"].Data = []byte(`{` + v2 + `, "global": {"site.global.port": "${web.ALLOCATED_PORT}", "site.global.debug": "${web.ALLOCATED_PORT}"}}`)
			},
			"appConfig.json#/global/site.global.debug: got a port that no export tells of, want an export with ${site.global.debug}; others cannot find it\n" +
				"metainfo.json#/application/exportGroups/0/exports/1/name: got the export g-idle, which no component has, want it in a component's compExports or appExports; nobody publishes it",
		},
		{
			"ports that another component reads", func(files fstest.MapFS) {
				files["appConfig.json"].Data = []byte(`{` + v2 + `, "global": {"site.global.named": "${web.ALLOCATED_PORT}", "site.global.at": "${web_HOST}:${@//site/global/named}",
					"site.global.own": "${web.ALLOCATED_PORT}{PER_CONTAINER}", "site.global.here": "${@//site/global/own}"},
					"components": {"web": {"site.global.same": "${web.ALLOCATED_PORT}"}, "side": {"site.global.same": "${web.ALLOCATED_PORT}"}}}`)
			},
			"appConfig.json#/global/site.global.own: got a port that no export tells of, want an export with ${site.global.own}; others cannot find it",
		},
		{
			"a script that nothing needs", func(files fstest.MapFS) {
				files["metainfo.json"].Data = []byte(strings.Replace(string(files["metainfo.json"].Data), `"name": "web",`, `"name": "web", "commandScript": {"script": "scripts/x.py"},`, 1))
			},
			"metainfo.json#/application/components/0/commandScript/script: got no file package/scripts/x.py, want the script, or no commandScript; commands is what START runs",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := clean()
			test.change(files)
			app, found := slider.Load(files, slider.Options{Strict: true})
			if len(found.Errors()) > 0 {
				t.Fatal(found)
			}
			if diff := cmp.Diff(slider.Lint(files, app).Error(), test.want); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
		})
	}
}

// What muster carries is an example: no advice, and nothing to fix.
func TestCatalogIsClean(t *testing.T) {
	for _, name := range []string{"tensorflow", "handwriting"} {
		files := os.DirFS("../../packages/catalog/" + name)
		app := load(t, files, slider.Options{})
		for _, p := range slider.Lint(files, app) {
			if !strings.Contains(p.Got, "no file package/") { // the framework's own command stands in
				t.Errorf("%s: %v", name, p)
			}
		}
		for _, f := range slider.Fixes(files) {
			t.Errorf("%s: %s: %q", name, f.Name, f.Changes)
		}
	}
}
