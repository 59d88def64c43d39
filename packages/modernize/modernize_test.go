package modernize_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/muster-agent/muster/packages/modernize"
	"github.com/muster-agent/muster/packages/python2"
	"github.com/muster-agent/muster/tests/need"
)

// fixing finds a Python with 2to3.
func fixing(t *testing.T) string {
	t.Helper()
	found := another()
	if found == "" {
		need.Skip(t, "no Python with lib2to3 (3.12 or older)")
	}
	return found
}

var another = sync.OnceValue(func() string { return modernize.Another(context.Background(), "") })

func TestChanges(t *testing.T) {
	cases := []struct{ name, source, want string }{
		{"print", "print \"a\", b\n", "print(\"a\", b)\n"},
		{"print to a file", "import sys\nprint >>sys.stderr, 'x'\n", "import sys\nprint('x', file=sys.stderr)\n"},
		{"except", "try:\n  f()\nexcept Exception, e:\n  pass\n", "try:\n  f()\nexcept Exception as e:\n  pass\n"},
		{"octal", "File('a', mode=0644)\n", "File('a', mode=0o644)\n"},
		{"has_key", "if d.has_key('x'): pass\n", "if 'x' in d: pass\n"},
		{"iteritems", "for k in d.iteritems(): pass\n", "for k in d.items(): pass\n"},
		{"xrange", "for i in xrange(3): pass\n", "for i in range(3): pass\n"},
		{"basestring", "isinstance(a, basestring)\n", "isinstance(a, str)\n"},
		{"urllib2", "import urllib2\nurllib2.urlopen(u)\n", "import urllib.request, urllib.error, urllib.parse\nurllib.request.urlopen(u)\n"},
		{"a call of print in what parses", "print('a', 'b')\nd.has_key(1)\n", "print('a', 'b')\n1 in d\n"},
		{"reduce", "x = reduce(f, a)\n", "from functools import reduce\nx = reduce(f, a)\n"},
		{"itertools", "import itertools\nitertools.izip(a, b)\n", "import itertools\nzip(a, b)\n"},
		{"types", "import types\nisinstance(a, types.StringType)\n", "import types\nisinstance(a, str)\n"},
		{"sibling modules", "import params\nprint params.x\n", "import params\nprint(params.x)\n"},
		{"no last newline", "print 1", "print(1)"},
		{"carriage returns", "print 1\r\nx = 2\r\n", "print(1)\r\nx = 2\r\n"},
		{"an encoding", "# -*- coding: latin-1 -*-\nprint '\xe4'\n", "# -*- coding: latin-1 -*-\nprint('\xe4')\n"},
		{"python 3 with words of python 2", "reduce = max\ndef raw_input(): pass\nreduce(1, 2)\nraw_input()\n", ""},
		{"python 3 that 2to3 would change", "print('a', 'b')\nx = d.items()\ny = map(f, x)\nz = input()\n", ""},
		{"python 3 alone", "match = 1\nasync def f():\n  print(f'{match}')\n", ""},
		{"nothing", "", ""},
	}
	dir := t.TempDir() // one package: starting 2to3 takes a second
	name := func(i int) string { return fmt.Sprintf("package/scripts/s%02d.py", i) }
	for i, tt := range cases {
		write(t, filepath.Join(dir, name(i)), tt.source)
	}
	changes, err := modernize.Changes(t.Context(), fixing(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]modernize.Change{}
	for _, c := range changes {
		asked[c.Name] = c
	}
	for i, tt := range cases {
		c, changed := asked[name(i)]
		if changed != (tt.want != "") || c.Err != nil {
			t.Errorf("%s: got %+v, want changed %t", tt.name, c, tt.want != "")
		}
		if got := read(t, filepath.Join(dir, name(i))); got != tt.source {
			t.Errorf("%s: asking changed it to %q", tt.name, got)
		}
	}
	if err := modernize.Write(dir, changes); err != nil {
		t.Fatal(err)
	}
	for i, tt := range cases {
		if got := read(t, filepath.Join(dir, name(i))); got != cmp.Or(tt.want, tt.source) {
			t.Errorf("%s: got %q, want %q", tt.name, got, cmp.Or(tt.want, tt.source))
		}
	}
	if again, err := modernize.Changes(t.Context(), fixing(t), dir); err != nil || len(again) > 0 {
		t.Errorf("once more: got %+v, %v, want nothing to do", again, err)
	}
}

// TestTable has each entry of the table on a line of its own: 2to3 changes what is said to be changed by it, and leaves
// the rest.
func TestTable(t *testing.T) {
	changed, left := python2.Table()
	for _, half := range []struct {
		name    string
		removed python2.Removed
		changed bool
	}{{"changed", changed, true}, {"left", left, false}} {
		t.Run(half.name, func(t *testing.T) {
			source := uses(half.removed)
			dir, script := newPackage(t, source+"print 1\n")
			changes, err := modernize.Changes(t.Context(), fixing(t), dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := modernize.Write(dir, changes); err != nil {
				t.Fatal(err)
			}
			got := read(t, script)
			for line := range strings.Lines(source) {
				if changed := !strings.Contains(got, line); changed != half.changed && !strings.HasSuffix(line, "# as it is\n") {
					t.Errorf("%q: got changed %t, want %t", line, changed, half.changed)
				}
			}
		})
	}
}

// uses is a script that uses each entry once.
func uses(removed python2.Removed) string {
	var out strings.Builder
	for name := range removed.Modules {
		fmt.Fprintf(&out, "import %s # once\n", name)
	}
	for name := range removed.Builtins {
		end := map[string]string{"reduce": "as it is"} // it is imported
		fmt.Fprintf(&out, "x = %s(a) # %s\n", name, cmp.Or(end[name], "once"))
	}
	for name := range removed.Methods {
		arguments := map[string]string{"has_key": "1"}
		fmt.Fprintf(&out, "x = a.%s(%s) # once\n", name, arguments[name])
	}
	for module, names := range removed.Members {
		fmt.Fprintf(&out, "import %s # as it is\n", module)
		for name := range names { // 2to3 knows the functions of two modules by their calls, and types by their names
			call := map[string]string{"operator": "(a)", "itertools": "(a)"}
			fmt.Fprintf(&out, "x = [%s.%s%s] # once\n", module, name, call[module])
		}
	}
	return out.String()
}

// TestSiblings has modules that import those beside them, as Python 2 finds them. Python 3 looks in the folders of
// programs alone.
func TestSiblings(t *testing.T) {
	for _, tt := range []struct{ name, file, source, want string }{
		{"a module", "lib/a.py", "import consts\n", "from . import consts\n"},
		{"a package", "lib/a.py", "import sub as s\n", "from . import sub as s\n"},
		{"names of a module", "lib/a.py", "from consts import (A,\n  B)\n", "from .consts import (A,\n  B)\n"},
		{"names of a package's module", "lib/a.py", "from sub.deep import A\n", "from .sub.deep import A\n"},
		{"in a function", "lib/a.py", "def f():\n  import consts # why\n", "def f():\n  from . import consts # why\n"},
		{"beside others", "lib/a.py", "import os, consts, md5, sub\n", "from . import consts, sub; import os, md5\n"},
		{"with a statement of Python 2", "lib/a.py", "import consts, urllib2\nprint 1\n", "from . import consts; import urllib.request, urllib.error, urllib.parse\nprint(1)\n"},
		{"of the same name as one above", "lib/a.py", "import params\n", "from . import params\n"},
		{"absolute", "lib/a.py", "from __future__ import absolute_import\nimport consts\n", ""},
		{"relative already", "lib/a.py", "from . import consts\nfrom .consts import A\n", ""},
		{"another's", "lib/a.py", "import os, resource_management\n", ""},
		{"a package's module by its whole name", "lib/a.py", "import sub.deep\n", ""},
		{"at the top", "a.py", "import params\nfrom lib import consts\nprint(1)\n", ""},
		{"beside a program", "run/a.py", "import consts\n", ""},
		{"in a folder that is no package", "loose/a.py", "import consts\n", ""},
		{"where a script changes sys.path", "lib/a.py", "import sys\nsys.path.append('lib')\nimport consts\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			scripts := filepath.Join(dir, "package/scripts")
			for _, name := range []string{
				"params.py", "__init__.py", "lib/__init__.py", "lib/consts.py", "lib/params.py", "lib/sub/__init__.py",
				"lib/sub/deep.py", "run/__init__.py", "run/consts.py", "loose/consts.py",
			} {
				write(t, filepath.Join(scripts, name), "A = B = 1\n")
			}
			write(t, filepath.Join(dir, "metainfo.xml"), "<script>scripts/run/a.py</script>")
			write(t, filepath.Join(scripts, tt.file), tt.source)
			changes, err := modernize.Changes(t.Context(), fixing(t), dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := modernize.Write(dir, changes); err != nil {
				t.Fatal(err)
			}
			if got := read(t, filepath.Join(scripts, tt.file)); got != cmp.Or(tt.want, tt.source) {
				t.Errorf("got %q, want %q; %+v", got, cmp.Or(tt.want, tt.source), changes)
			}
		})
	}
}

// TestDiffIsAPatch has the diff applied by patch(1)'s rules: git's own apply.
func TestDiffIsAPatch(t *testing.T) {
	dir, script := newPackage(t, "import os\n\nprint 1\nx = 2\ny = 3\nz = 4\nw = 5\nif a <> b: pass")
	changes, err := modernize.Changes(t.Context(), fixing(t), dir)
	if err != nil || len(changes) != 1 {
		t.Fatal(changes, err)
	}
	cmd := exec.Command("git", "apply", "--unsafe-paths", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(changes[0].Diff)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, changes[0].Diff)
	}
	const want = "import os\n\nprint(1)\nx = 2\ny = 3\nz = 4\nw = 5\nif a != b: pass"
	if got := read(t, script); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestModesLinksAndOtherFiles(t *testing.T) {
	dir, script := newPackage(t, "print 1\n")
	outside := filepath.Join(t.TempDir(), "outside.py")
	sub := filepath.Join(dir, "package/scripts/sub/deep.py")
	for path, text := range map[string]string{
		outside: "print 1\n", sub: "print 2\n", filepath.Join(dir, "package/scripts/notes.txt"): "print 3\n",
		filepath.Join(dir, "package/files/f.py"): "print 4\n",
	} {
		write(t, path, text)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "package/scripts/link.py")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(script, 0o750); err != nil {
		t.Fatal(err)
	}
	changes, err := modernize.Changes(t.Context(), fixing(t), dir)
	if err != nil || len(changes) != 3 || changes[2].Name != "package/scripts/link.py" || !changes[2].Link || changes[0].Link || changes[0].Name != "package/scripts/app.py" || changes[1].Name != "package/scripts/sub/deep.py" {
		t.Fatalf("got %+v, %v", changes, err)
	}
	write(t, script+".modernized", "a name that anybody may have taken")
	if err := modernize.Write(dir, changes); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("got %v, %v, want mode 0750", info, err)
	}
	for path, want := range map[string]string{script: "print(1)\n", sub: "print(2)\n", outside: "print 1\n", filepath.Join(dir, "package/files/f.py"): "print 4\n"} {
		if got := read(t, path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "package/scripts/.muster-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOneUnreadableFileHidesNoOther(t *testing.T) {
	dir, script := newPackage(t, "print 1\n")
	bad := filepath.Join(dir, "package/scripts/bad.py")
	const broken = "y = 1\nx = = 1\n"
	write(t, bad, broken)
	changes, err := modernize.Changes(t.Context(), fixing(t), dir)
	if err != nil || len(changes) != 2 {
		t.Fatalf("got %+v, %v", changes, err)
	}
	if changes[0].Err != nil || changes[1].Err == nil || !strings.HasPrefix(changes[1].Err.Error(), "package/scripts/bad.py:2: does not parse as Python 2 or 3") {
		t.Errorf("got %v and %v", changes[0].Err, changes[1].Err)
	}
	if err := modernize.Write(dir, changes); err != nil {
		t.Fatal(err)
	}
	if good, same := read(t, script), read(t, bad); good != "print(1)\n" || same != broken {
		t.Errorf("got %q and %q", good, same)
	}
}

func TestNothingOfThePackageRuns(t *testing.T) {
	dir, _ := newPackage(t, "print 1\nopen('ran', 'w')\n")
	for _, name := range []string{"json.py", "lib2to3.py", "sitecustomize.py"} {
		write(t, filepath.Join(dir, name), "open('ran', 'w')\n")
	}
	python := fixing(t)
	t.Chdir(dir)
	t.Setenv("PYTHONPATH", dir)
	if _, err := modernize.Changes(t.Context(), python, "."); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Error("a file of the package ran")
	}
}

func TestErrors(t *testing.T) {
	dir, _ := newPackage(t, "print 1\n")
	// as 3.13 answers
	without := filepath.Join(t.TempDir(), "python3.13")
	write(t, without, "#!/bin/sh\nexec python3 -c 'import sys; sys.modules[\"lib2to3\"] = None; exec(sys.argv[3])' \"$@\"\n")
	broken := filepath.Join(t.TempDir(), "python")
	write(t, broken, "#!/bin/sh\necho first >&2; echo last words >&2; exit 9\n")
	for _, path := range []string{without, broken} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	empty := t.TempDir()
	linked, script := newPackage(t, "")
	if err := errors.Join(os.Remove(script), os.Symlink("../app.py", script)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		python, dir, want string
		is                error
	}{
		{without, dir, without + ": it has no lib2to3", modernize.ErrNoFixers},
		{broken, dir, broken + ": exit status 9: last words", nil},
		{"no-such-python", dir, "no-such-python", exec.ErrNotFound},
		{"no-such-python", dir, "no-such-python", modernize.ErrNoPython},
		{"/none/python3", dir, "/none/python3: no such file", modernize.ErrNoPython},
		{"python3", linked, "left as they are: package/scripts/app.py", modernize.ErrOnlyLinks},
		{"python3", empty, "no folder package/scripts", modernize.ErrNoScripts},
		{"python3", filepath.Join(empty, "gone"), "no such file", os.ErrNotExist},
	} {
		_, err := modernize.Changes(t.Context(), tt.python, tt.dir)
		if err == nil || !strings.Contains(err.Error(), tt.want) || (tt.is != nil && !errors.Is(err, tt.is)) {
			t.Errorf("%s %s: got %v, want %s", tt.python, tt.dir, err, tt.want)
		}
	}
}

// TestRemedy has no other Python in PATH: then it says what to install, and how to name it.
func TestRemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	got := modernize.Remedy(t.Context(), "python3.13")
	for _, want := range []string{"Python 3.12 or older", "pip install fissix", "--python DIR/bin/python"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

func newPackage(t *testing.T, source string) (dir, script string) {
	t.Helper()
	dir = t.TempDir()
	script = filepath.Join(dir, "package/scripts/app.py")
	write(t, script, source)
	return dir, script
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
