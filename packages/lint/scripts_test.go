package lint

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages"
)

// A package is a stranger's: what it calls a Python is run only where it is plainly none of its own.
func TestInterpreter(t *testing.T) {
	dir, host := t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(dir, "python3"), filepath.Join(host, "python3.9"), filepath.Join(host, "tool")} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(host, "there")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, python, want string
		plain              bool
	}{
		{"none", "", "python3", true},
		{"the usual", "python3", "python3", true},
		{"a name", "python3.12", "python3", false},
		{"one of the host", host + "/python3.9", host + "/python3.9", false},
		{"one that is not there", host + "/python3.10", "python3", false},
		{"another program", host + "/tool", "python3", false},
		{"relative", "./python3", "python3", false},
		{"in the package", dir + "/python3", "python3", false},
		{"in the package by a link", host + "/there/python3", "python3", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			app := appdef.App{Components: []appdef.Component{{Settings: appdef.ComponentSettings{Python: test.python}}}}
			got, plain := interpreter(&packages.Package{Path: dir}, app)
			if got != test.want || plain != test.plain {
				t.Errorf("got %s, %v, want %s, %v", got, plain, test.want, test.plain)
			}
		})
	}
}

// A source that breaks the parser does not hide the others.
func TestLintScriptsThatCannotBeRead(t *testing.T) {
	files := fstest.MapFS{
		"package/scripts/a.py": {Data: []byte("x = " + strings.Repeat("(", 5000) + strings.Repeat(")", 5000))},
		"package/scripts/b.py": {Data: []byte("x = 1\x00\n")},
		"package/scripts/c.py": {Data: []byte("# -*- coding: nowhere -*-\n")},
		"package/scripts/d.py": {Data: []byte("match x:\n    case 1:\n        pass\n")},
		"package/scripts/e.py": {Data: []byte("x = 1\n")},
		"package/scripts/f.sh": {Data: []byte("((\n")},
	}
	scripts, unseen := readScripts(context.Background(), &packages.Package{FS: files}, appdef.App{}, true)
	if len(unseen) > 0 {
		t.Fatal(unseen)
	}
	want := map[string]bool{"a.py": true, "b.py": true, "c.py": true, "d.py": true, "e.py": false}
	for _, s := range scripts {
		name := filepath.Base(s.Name)
		if got := len(s.Faults) > 0; got != want[name] {
			t.Errorf("%s: got faults %v, want %v", name, s.Faults, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("got nothing of %v", want)
	}
}

// A script that only defines its class ends with 0 and does nothing.
func TestUnrunClass(t *testing.T) {
	const class = "from resource_management import *\nclass Web(Script):\n  def start(self, env):\n    pass\n"
	for _, test := range []struct{ name, source, want string }{
		{"nothing runs it", class, "Web"},
		{"it is made, and not run", class + "if __name__ == '__main__':\n  Web()\n", "Web"},
		{"the last of several", class + "class Own(Web):\n  def b(self):\n    super(Own, self).b()\n", "Own"},
		{"it is run", class + "Web().execute()\n", ""},
		{"by a name of its own", class + "run = Web().execute\nrun()\n", ""},
		{"by another", "from base import run\n" + class + "run(Web)\n", ""},
		{"by a name that is made up", class + "getattr(Web(), 'execute')()\n", ""},
		{"by what another module brings", "from base import *\n" + class + "run()\n", ""},
		{"by a decorator", "from base import runs\n" + strings.Replace(class, "class", "@runs\nclass", 1), ""},
		{"by its own methods", class + "Web().start(None)\n", ""},
		{"no class of commands", "class Web(object):\n  pass\nprint(1)\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{"package/scripts/web.py": {Data: []byte(test.source)}}
			scripts, unread := readScripts(t.Context(), &packages.Package{FS: tree}, appdef.App{}, true)
			if len(unread) > 0 {
				t.Fatal(unread)
			}
			got := ""
			if scripts[0].Unrun != nil {
				got = scripts[0].Unrun.Name
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
