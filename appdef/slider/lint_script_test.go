package slider_test

import (
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef/slider"
)

func TestLintScripts(t *testing.T) {
	const script = "package/scripts/web.py"
	class := func(methods ...string) []slider.Script {
		return []slider.Script{{Name: script, Class: &slider.Class{Name: "Web", Line: 3, Methods: methods, Whole: true}}}
	}
	file := func(name, text string, mode fs.FileMode) fstest.MapFS {
		return fstest.MapFS{name: {Data: []byte(text), Mode: mode}}
	}
	for _, test := range []struct {
		name, web string
		files     fstest.MapFS
		scripts   []slider.Script
		want      string
		errors    int
	}{
		{name: "all there", scripts: class("start", "status")},
		{
			name: "slips", scripts: class("srart", "statsu"),
			want: "package/scripts/web.py:3: got the class Web without a method start, want one; its srart was meant to be start?\n" +
				"package/scripts/web.py:3: got the class Web without a method status, want one; its statsu was meant to be status?",
		},
		{
			name: "no status", scripts: class("start"),
			want: "package/scripts/web.py:3: got the class Web without a method status, want one; whether its processes live is all that is known of it",
		},
		{name: "a base that nobody knows", scripts: []slider.Script{{Name: script, Class: &slider.Class{Name: "Web"}}}},
		{name: "a class that nothing calls", scripts: []slider.Script{{Name: "package/scripts/other.py", Class: &slider.Class{Whole: true}}}},
		{
			name: "a class that is never run", errors: 1,
			scripts: []slider.Script{
				{Name: script, Unrun: &slider.Name{Name: "Web", Line: 3}},
				{Name: "package/scripts/base.py", Unrun: &slider.Name{Name: "Base", Line: 3}},
			},
			want: `package/scripts/web.py:3: got the class Web, which nothing runs, ` +
				`want at the end of the file: if __name__ == "__main__": Web().execute(); ` +
				`each command would succeed and do nothing`,
		},
		{
			name: "faults", errors: 1,
			scripts: []slider.Script{{Name: script, Faults: []slider.ScriptFault{{Line: 2, Got: "SyntaxError: x", Want: "y", Hint: "z", Fatal: true}, {Line: 9, Got: "a", Want: "b"}}}},
			want:    "package/scripts/web.py:2: got SyntaxError: x, want y; z\npackage/scripts/web.py:9: got a, want b",
		},
		{
			name: "templates", files: fstest.MapFS{"package/templates/web.conf.j2": {}},
			scripts: []slider.Script{{Name: script, Templates: []slider.Name{{Name: "web.conf.j2", Line: 1}, {Name: "wep.conf.j2", Line: 4}, {Name: "/etc/x.j2", Line: 5}, {Name: "{x}.j2", Line: 6}}}},
			want:    `package/scripts/web.py:4: got the template "wep.conf.j2", which is not there, want a file of package/templates; did you mean web.conf.j2?`,
		},
		{
			name: "a program of a script", files: file("package/files/work.sh", "#!/bin/sh\r\n", 0o644),
			scripts: []slider.Script{{Name: script, Text: `Execute("{d}/work.sh x")`, Programs: []string{"work.sh"}}},
			want: "package/files/work.sh:1: got CRLF at the ends of lines, want LF; a shell reads the CR as part of a word\n" +
				"package/files/work.sh:1: got a script of mode 0644, want one that can be executed; chmod +x package/files/work.sh",
		},
		{name: "one that may be executed", files: file("package/files/work.sh", "#!/bin/sh\n", 0o755), scripts: []slider.Script{{Name: script, Text: "work.sh", Programs: []string{"work.sh"}}}},
		{name: "one that nobody names", files: file("package/files/work.sh", "#!/bin/sh\r\n", 0o644)},
		{
			name: "of a command", web: `"commands": [{"exec": "A=1 exec ${MUSTER_PACKAGE}/files/work.sh a && true"}]`, files: file("package/files/work.sh", "#!/bin/sh\n", 0o644),
			want: "package/files/work.sh:1: got a script of mode 0644, want one that can be executed; chmod +x package/files/work.sh",
		},
		{name: "what a shell reads", web: `"commands": [{"exec": "cd x; sh files/work.sh"}]`, files: file("package/files/work.sh", "#!/bin/sh\n", 0o644)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.web == "" {
				test.web = `"commandScript": {"script": "scripts/web.py"}`
			}
			files := small(test.web, `"commands": [{"exec": "true"}]`, `"global": {}`, map[string]string{script: ""})
			maps.Copy(files, test.files)
			app, found := slider.Load(files, slider.Options{Strict: true})
			if len(found.Errors()) > 0 {
				t.Fatal(found)
			}
			got := slider.LintScripts(files, app, test.scripts)
			if diff := cmp.Diff(got.Error(), test.want); diff != "" {
				t.Errorf("got -, want +:\n%s", diff)
			}
			if n := len(got.Errors()); n != test.errors {
				t.Errorf("got %d errors, want %d", n, test.errors)
			}
		})
	}
}
