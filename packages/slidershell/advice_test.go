package slidershell

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdvice runs each snippet by the python3 of this machine and reads what it wrote.
func TestAdvice(t *testing.T) {
	const fixed = "; muster package modernize DIR --write does it"
	for _, tt := range []struct{ name, source, line, offending, want string }{
		{"print statement", "x = 1\nprint \"hello\"", "2", `print "hello"`, "print(…)" + fixed},
		{"print to a file", "import sys\nprint >>sys.stderr, 'x'", "2", "print >>sys.stderr, 'x'", "print(…, file=…)" + fixed},
		{"print in a method", "class A:\n    def f(self):\n        print 'x' % 1", "3", "print 'x' % 1", "print(…)" + fixed},
		{"exec statement", "exec 'x = 1'", "1", "exec 'x = 1'", "exec(…)" + fixed},
		{"except with a comma", "try:\n    pass\nexcept (A, B), e:\n    pass", "3", "except (A, B), e:", "except (A, B) as e:" + fixed},
		{"raise with a comma", "raise ValueError, 'x'", "1", "raise ValueError, 'x'", "raise ValueError(…)" + fixed},
		{"raise of text", "raise 'gone'", "1", "raise 'gone'", `raise Fail("…")`},
		{"unequal", "if 1 <> 2: pass", "1", "if 1 <> 2: pass", "!=" + fixed},
		{"backticks", "x = 1\ny = `x`", "2", "y = `x`", "repr(x)" + fixed},
		{"octal", "mode = 0755", "1", "mode = 0755", "0o755" + fixed},
		{"long", "n = 0x10L", "1", "n = 0x10L", "0x10" + fixed},
		{"raw unicode", "s = ur'a'", "1", "s = ur'a'", "r'…'" + fixed},
		{"tuple parameter", "def f((a, b)): pass", "1", "def f((a, b)): pass", "one name in place of the parentheses, taken apart in the body" + fixed},
		{"lambda of a tuple", "f = lambda (k, v): k", "1", "f = lambda (k, v): k", "lambda with one name, and x[0], x[1]" + fixed},
		{"tabs", "if True:\n\tx = 1\n        y = 2", "3", "y = 2", "spaces alone in front of a line"},
		{"has_key", "{}.has_key(1)", "1", "{}.has_key(1)", "key in dictionary" + fixed},
		{"iteritems", "for k, v in {}.iteritems(): pass", "1", "for k, v in {}.iteritems(): pass", ".items()" + fixed},
		{"next", "iter([1]).next()", "1", "iter([1]).next()", "next(…)" + fixed},
		{"getcwdu", "import os\nos.getcwdu()", "2", "os.getcwdu()", "os.getcwd()" + fixed},
		{"letters", "import string\nstring.letters", "2", "string.letters", "string.ascii_letters"},
		{"decode", "'x'.decode('utf-8')", "1", "'x'.decode('utf-8')", "the text as it is: str is Unicode"},
		{"bytes", "b'a' in b'abc' and b'abc'.split(',')", "1", "b'a' in b'abc' and b'abc'.split(',')", "b'…', or .decode() on what was read: bytes are no text"},
		{"unicode", "unicode('x')", "1", "unicode('x')", "str" + fixed},
		{"basestring", "isinstance(1, basestring)", "1", "isinstance(1, basestring)", "str" + fixed},
		{"xrange", "for i in xrange(3): pass", "1", "for i in xrange(3): pass", "range" + fixed},
		{"file", "file('x')", "1", "file('x')", "open"},
		{"urllib2", "import urllib2", "1", "import urllib2", "import urllib.request" + fixed},
		{"urlencode", "from urllib import urlencode", "1", "from urllib import urlencode", "urllib.parse.urlencode" + fixed},
		{"urlopen", "import urllib\nurllib.urlopen('x')", "2", "urllib.urlopen('x')", "urllib.request.urlopen" + fixed},
		{"ConfigParser", "import ConfigParser", "1", "import ConfigParser", "import configparser" + fixed},
		{"Queue", "from Queue import Queue", "1", "from Queue import Queue", "import queue" + fixed},
		{"StringIO", "from StringIO import StringIO", "1", "from StringIO import StringIO", "import io" + fixed},
		{"md5", "import md5", "1", "import md5", "import hashlib"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script, stderr := runSnippet(t, tt.source)
			want := "package/scripts/app.py:" + tt.line + ": `" + tt.offending + "` does not run on Python 3: write " + tt.want
			if got := Advice(script, stderr); got != want {
				t.Errorf("got  %s\nwant %s\nof:\n%s", got, want, stderr)
			}
		})
	}
}

// TestNoAdvice has failures that are none of Python 2, or none of the package.
func TestNoAdvice(t *testing.T) {
	for _, source := range []string{
		"1 / 0", "def", "x = (1", "import nowhere_to_be_found", "gone", "raise SystemExit(3)", "''.gone", "raise TypeError('x')",
		"import sys\nsys.exit('Traceback')", "raise 3", "def f(x:\n  pass",
	} {
		script, stderr := runSnippet(t, source)
		if got := Advice(script, stderr); got != "" {
			t.Errorf("%q: got %q, want none", source, got)
		}
	}
	const elsewhere = "Traceback (most recent call last):\n  File \"/w/package/scripts/app.py\", line 1, in <module>\n    import kazoo\n" +
		"  File \"/usr/lib/python3/dist-packages/kazoo.py\", line 9, in <module>\n    x = unicode(1)\nNameError: name 'unicode' is not defined\n"
	if got := Advice("/w/package/scripts/app.py", elsewhere); got != "" {
		t.Errorf("another's library: got %q, want none", got)
	}
	if got := Advice("app.py", ""); got != "" {
		t.Errorf("no stderr: got %q", got)
	}
}

// TestAdviceOfAnImportedModule names the module, not the script, and takes the older wording of the parser too.
func TestAdviceOfAnImportedModule(t *testing.T) {
	const stderr = "2026-01-01 12:00:00,000 - starting\nTraceback (most recent call last):\n" +
		"  File \"/w/package/scripts/app.py\", line 3, in <module>\n    import functions\n" +
		"  File \"/w/package/scripts/lib/functions.py\", line 7\n    except Exception, e:\n                    ^\nSyntaxError: invalid syntax\n"
	const want = "package/scripts/lib/functions.py:7: `except Exception, e:` does not run on Python 3: write except Exception as e:; muster package modernize DIR --write does it"
	if got := Advice("/w/package/scripts/app.py", stderr); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAdviceThroughALink has a package that is a link, as an instance's definition is: Python names the folder behind
// the link as that of the module.
func TestAdviceThroughALink(t *testing.T) {
	for _, tt := range []struct{ module, want string }{
		{"f(mode=0755)", "`f(mode=0755)` does not run on Python 3: write 0o755"},
		{"import urllib2", "`import urllib2` does not run on Python 3: write import urllib.request"},
		{"{}.has_key(1)", "`{}.has_key(1)` does not run on Python 3: write key in dictionary"},
		{"x = unicode(1)", "`x = unicode(1)` does not run on Python 3: write str"},
	} {
		t.Run(tt.module, func(t *testing.T) {
			dir := t.TempDir()
			scripts := filepath.Join(dir, "staged/package/scripts")
			if err := os.MkdirAll(scripts, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("staged", filepath.Join(dir, "definition")); err != nil {
				t.Fatal(err)
			}
			files := map[string]string{"app.py": "import functions\n", "functions.py": "import os\n" + tt.module + "\n"}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(scripts, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			script := filepath.Join(dir, "definition/package/scripts/app.py")
			stderr := failing(t, script)
			want := "package/scripts/functions.py:2: " + tt.want + "; muster package modernize DIR --write does it"
			if got := Advice(script, stderr); got != want {
				t.Errorf("got  %s\nwant %s\nof:\n%s", got, want, stderr)
			}
		})
	}
}

func runSnippet(t *testing.T, source string) (script, stderr string) {
	t.Helper()
	script = filepath.Join(t.TempDir(), "package/scripts/app.py")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte(source+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return script, failing(t, script)
}

// failing is what a script that fails writes to stderr.
func failing(t *testing.T, script string) string {
	t.Helper()
	var text strings.Builder
	cmd := exec.Command("python3", "-S", script)
	cmd.Stderr = &text
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		t.Fatalf("%s: %v, want a failure", script, err)
	}
	return text.String()
}
