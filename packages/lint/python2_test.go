package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/tests/need"
)

// advice is what lint says of one script, "line: what to write", with files of a package around it.
func advice(t *testing.T, name, source string) []string {
	t.Helper()
	tree := fstest.MapFS{
		"metainfo.json":                   {Data: []byte(`{"script": "scripts/a.py"}`)},
		"package/scripts/params.py":       {},
		"package/scripts/lib/__init__.py": {},
		"package/scripts/lib/consts.py":   {},
	}
	tree["package/scripts/"+name] = &fstest.MapFile{Data: []byte(source)}
	scripts, unread := readScripts(t.Context(), &packages.Package{FS: tree}, appdef.App{}, true)
	if len(unread) > 0 {
		t.Fatal(unread)
	}
	said := []string{}
	for _, s := range scripts {
		for _, f := range s.Faults {
			_, write, _ := strings.Cut(f.Hint, "write ")
			write, _, _ = strings.Cut(write, "; muster package")
			said = append(said, fmt.Sprintf("%d: %s", f.Line, write))
		}
	}
	return said
}

// TestPython2 has what only Python 2 has: each is told with its line and what to write.
func TestPython2(t *testing.T) {
	const list = "list(…) around what is no list in Python 3"
	for _, tt := range []struct {
		name, source string
		want         []string
	}{
		{"each module of an import", "import os, md5\nimport sets, os, popen2\n", []string{"1: import hashlib", "2: import subprocess", "2: code with set()"}},
		{"modules that are gone", "import exceptions, commands\nfrom md5 import new\n", []string{"1: import subprocess", "1: import builtins", "2: import hashlib"}},
		{"string", "import string\nstring.strip(a)\nstring.join(b)\nstring.maketrans(c, d)\nstring.letters\n", []string{"2: str.strip", "3: separator.join(words)", "4: str.maketrans", "5: string.ascii_letters"}},
		{"from string", "from string import join, capwords, upper\n", []string{"1: separator.join(words)", "1: str.upper"}},
		{"sort", "a.sort(by_len)\na.sort(cmp=f)\nsorted(a, f)\nsorted(a, cmp=f)\n", []string{"1: sort(key=functools.cmp_to_key(…))", "2: sort(key=functools.cmp_to_key(…))", "3: sorted(…, key=functools.cmp_to_key(…))", "4: sorted(…, key=functools.cmp_to_key(…))"}},
		{"codecs", "'x'.encode('hex')\nb.decode('base64')\n", []string{`1: codecs.encode(…, "hex") or codecs.decode(…, "hex") of bytes`, `2: codecs.encode(…, "base64") or codecs.decode(…, "base64") of bytes`}},
		{"urllib", "import urllib\nurllib.urlencode(a)\nurllib.quote(a)\nurllib.urlopen(a)\n", []string{"2: urllib.parse.urlencode", "3: urllib.parse.quote", "4: urllib.request.urlopen"}},
		{"sys, os, itertools, types", "import sys, os, itertools, types as t\nsys.maxint\nos.getcwdu()\nitertools.izip(a)\nt.StringType\n", []string{"2: sys.maxsize", "3: os.getcwd()", "4: zip", "5: str"}},
		{"message", "try:\n  f()\nexcept Exception as e:\n  print(e.message)\n", []string{"4: str(…)"}},
		{"views", "d.keys()[0]\nk = d.keys()\nk.sort()\nk + [1]\nfilter(f, a)[0]\nlen(map(f, a))\n", []string{"1: " + list, "3: " + list, "4: " + list, "5: " + list, "6: " + list}},
		{"builtins", "raw_input()\nunicode(a)\nlong(a)\nxrange(a)\nbasestring\nd.has_key(a)\nunichr(a)\nreduce(f, a)\nfile(a)\nexecfile(a)\n", []string{"1: input", "2: str", "3: int", "4: range", "5: str", "6: key in dictionary", "7: chr", "8: functools.reduce", "9: open", "10: exec(open(…).read())"}},
		{"all of a try that takes anything", "try:\n  b = 1\n  a = unicode(b)\nexcept Exception as e:\n  a = long(b)\n", []string{"3: str", "5: int"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := advice(t, "a.py", tt.source); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestPython2Syntax has what Python 3 cannot read: each line is told, and what else is of Python 2 in the same file.
func TestPython2Syntax(t *testing.T) {
	if !slices.Equal(advice(t, "a.py", "import sys\nprint 1\n"), []string{"2: print(1)"}) {
		need.Skip(t, "needs a python3 with 2to3")
	}
	const source = `import os, md5
mode = 0755

def f((a, b), c):
  try:
    print "a", unicode(a)
  except OSError, e:
    raise Fail, "b"
  print("c", "d")
  if a <> b: return 10L
g(mode=0644,
  text=` + "`a`" + `)
`
	want := []string{
		"2: mode = 0o755", "4: def f(xxx_todo_changeme, c):; (a, b) = xxx_todo_changeme", `6: print("a", unicode(a))`,
		"7: except OSError as e:", `8: raise Fail("b")`, "10: if a != b: return 10", "11: g(mode=0o644,", "12: text=repr(a))",
		"1: import hashlib", "6: str",
	}
	if got := advice(t, "a.py", source); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	got := advice(t, "a.py", strings.Repeat("print 1\n", 30))
	if len(got) != mostFindings+1 || got[mostFindings] != "21: " {
		t.Errorf("30 lines: got %q, want %d and that there are more", got, mostFindings)
	}
}

// TestMixedTabs has tabs and blanks before lines, which Python 3 refuses: that is told, and so is the rest of the file.
func TestMixedTabs(t *testing.T) {
	if !slices.Equal(advice(t, "a.py", "import sys\nprint 1\n"), []string{"2: print(1)"}) {
		need.Skip(t, "needs a python3 with 2to3")
	}
	for _, tt := range []struct {
		name, source string
		want         []string
	}{
		{"of Python 3", "import md5\ndef f():\n        a = 1\n" +
			"\tb = unicode(a)\n", []string{"4: spaces alone in front of a line", "1: import hashlib", "4: str"}},
		{"of Python 2", "def f(a):\n        if a:\n" +
			"\t    print a\n", []string{"3: print(a)", "3: spaces alone in front of a line"}},
		{"behind a line of Python 2", "print 1\ndef f(a):\n        if a:\n" +
			"\t    pass\n", []string{"1: print(1)", "4: spaces alone in front of a line"}},
		{"tabs alone", "def f(a):\n\tif a:\n\t\tprint a\n", []string{"3: print(a)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := advice(t, "a.py", tt.source); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// What 2to3 leaves is not promised: it knows some names by their calls alone.
func TestModernizePromise(t *testing.T) {
	for source, want := range map[string]bool{
		"q = raw_input\n": false, "q = raw_input()\n": true, "f(reduce)\n": false, "q = unicode\n": true,
		"import itertools\nf(itertools.izip)\n": false, "import itertools\nitertools.izip(a, b)\n": true,
	} {
		tree := fstest.MapFS{"package/scripts/a.py": {Data: []byte(source)}}
		scripts, _ := readScripts(t.Context(), &packages.Package{FS: tree}, appdef.App{}, true)
		if len(scripts[0].Faults) != 1 || strings.Contains(scripts[0].Faults[0].Hint, "modernize") != want {
			t.Errorf("%q: got %+v, want modernize named: %t", source, scripts[0].Faults, want)
		}
	}
}

// mostFindings is MOST of scripts.py.
const mostFindings = 20

func TestPython2Siblings(t *testing.T) {
	want := []string{"2: from . import consts, or from .consts import …"}
	if got := advice(t, "lib/net.py", "import os\nimport consts, params\n"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, source := range map[string]string{
		"a.py": "import params\nfrom lib import consts\n", "lib/net.py": "from . import consts\nimport params\n",
		"lib/path.py": "import sys\nsys.path.insert(0, 'lib')\nimport consts\n",
	} {
		if got := advice(t, name, source); len(got) > 0 {
			t.Errorf("%s %q: got %q", name, source, got)
		}
	}
}

// TestPython3IsLeftAlone has programs for Python 3, and for both.
func TestPython3IsLeftAlone(t *testing.T) {
	for _, source := range []string{
		"try:\n  import ConfigParser\nexcept ImportError:\n  import configparser as ConfigParser\n",
		"try:\n  from urllib.parse import quote\nexcept ImportError:\n  from urllib import quote\n",
		"try:\n  unicode\nexcept NameError:\n  unicode = str\nunicode(1)\n",
		"try:\n  text = unicode\nexcept:\n  text = str\n",
		"import sys\nif sys.version_info[0] < 3:\n  import urllib2\n  text = unicode\nelse:\n  text = str\n",
		"import six\ntext = str if six.PY3 else unicode\n",
		"string = 'a'\nstring.strip()\n", "import string\nstring.capwords(a)\nstring.ascii_letters\n",
		"def reduce(a): pass\nreduce(1)\n", "import functools\nfunctools.reduce(f, a)\n", "from functools import reduce\nreduce(f, a)\n",
		"a.sort()\na.sort(key=f)\narray.sort(0)\nsorted(a, key=f, reverse=True)\n",
		"import codecs\ncodecs.encode(b'a', 'hex')\n'a'.encode('utf-8')\n",
		"try:\n  f()\nexcept OwnError as e:\n  e.message\nmail.message\n",
		"list(d.keys())[0]\nk = sorted(d.keys())\nk.sort()\nk = d.keys()\nfor a in k: pass\n",
		"def f(k):\n  return k[0]\ndef g():\n  k = d.keys()\n  return len(k)\n",
		"print('a', 'b')\nx = d.items()\ny = map(f, x)\nz = input()\n", "from resource_management.core.exceptions import Fail\n",
		"import urllib.parse\n" +
			"urllib.parse.quote(a)\n", "import email.md5\n", "from . import user\n", "parser.parse_args().commands\n",
	} {
		if got := advice(t, "a.py", source); len(got) > 0 {
			t.Errorf("%q: got %q", source, got)
		}
	}
}

// TestCatalogIsOfPython3 reads the scripts of all packages that ship with muster.
func TestCatalogIsOfPython3(t *testing.T) {
	for _, name := range catalog.Names() {
		tree, err := catalog.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		scripts, _ := readScripts(t.Context(), &packages.Package{FS: tree}, appdef.App{}, true)
		for _, s := range scripts {
			if len(s.Faults) > 0 {
				t.Errorf("%s: %s: got %+v", name, s.Name, s.Faults)
			}
		}
	}
}
