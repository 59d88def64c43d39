package docs_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// step is what a guide has its reader do next: a line to type, or a file to write.
type step struct {
	typed
	file string // empty: a line
}

// steps are a document's console blocks, line by line, and between them its blocks that are a whole file: their opening
// line has its name behind the language.
func steps(document string) []step {
	var found []step
	blocks, _ := fences(document)
	for _, b := range blocks {
		if lang, file, ok := strings.Cut(b.lang, " "); ok && lang != "console" {
			found = append(found, step{typed: typed{line: b.line, text: strings.Join(b.text, "\n") + "\n"}, file: file})
			continue
		}
		if b.lang != "console" {
			continue
		}
		for _, t := range consoles("```console\n" + strings.Join(b.text, "\n") + "\n```") {
			t.line += b.line - 2
			found = append(found, step{typed: t})
		}
	}
	return found
}

// guides are the documents that are followed from their first line to their last, with muster in the PATH.
var guides = []string{"doc/checkpoints.md", "doc/convert.md", "doc/frameworks.md", "doc/hbox.md", "doc/launcher-kubernetes.md", "doc/launcher-nomad.md", "doc/launcher-slurm.md", "doc/launcher-systemd.md", "doc/launcher-yarn.md", "doc/launchers.md", "doc/packages.md", "doc/pai.md", "doc/scripts.md", "doc/sides.md", "doc/slider.md", "doc/upgrade.md"}

// webServer is where the guides have a web server for the folder site.
const webServer = "http://127.0.0.1:8000"

// TestGuides does what the guides say and looks for what they quote.
func TestGuides(t *testing.T) {
	python(t)
	for _, name := range guides {
		t.Run(filepath.Base(name), func(t *testing.T) {
			all := steps(read(t, name))
			if len(all) < 2 {
				t.Fatalf("only %d steps", len(all))
			}
			d := newDesk(t)
			web := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(d.dir, "site"))))
			defer web.Close()
			defer stopAll(d)
			for _, s := range all {
				if s.file != "" {
					d.write(s.file, s.text)
					continue
				}
				follows(t, d, name, web.URL, s.typed)
			}
		})
	}
}

func follows(t *testing.T, d desk, document, web string, line typed) {
	t.Helper()
	if strings.Contains(line.text, "modernize") {
		lib2to3(t, d)
	}
	text := strings.ReplaceAll(line.text, webServer, web)
	text = "PATH=$PWD/bin:$PATH XDG_STATE_HOME= XDG_CACHE_HOME=; " + text
	if rest, beside := strings.CutSuffix(text, " &"); beside {
		d.leaves(rest)
		return
	}
	output, code := d.types(text)
	if code != 0 {
		t.Fatalf("%s:%d: %s: exit code %d\n%s", document, line.line, line.text, code, output)
	}
	for _, quoted := range line.says {
		if !says(output, quoted) {
			t.Errorf("%s:%d: %s: does not say %q but\n%s", document, line.line, line.text, quoted, output)
		}
	}
}

// stopAll ends what a guide that went wrong has left in the background.
func stopAll(d desk) {
	d.types("PATH=$PWD/bin:$PATH; for app in .home/.local/state/muster/*/.slider/; do test ! -d $app || muster slider destroy $(basename $(dirname $app)) --force; done")
}

// lib2to3 skips where this Python is too new for what the guide says of Python 2.
func lib2to3(t *testing.T, d desk) {
	t.Helper()
	if _, code := d.types("python3 -W ignore -c 'import lib2to3'"); code != 0 {
		need.Skip(t, "needs a Python 3.12 or older")
	}
}

// TestScriptExamples lays out the packages that the guide of scripts spells out, runs them and asks them.
func TestScriptExamples(t *testing.T) {
	python(t)
	all := examples(read(t, "doc/scripts.md"))
	if len(all) == 0 {
		t.Fatal("the guide has no example")
	}
	for _, e := range all {
		d := newDesk(t)
		defer stopAll(d)
		for name, text := range e.files {
			d.write(filepath.Join("app", name), text)
		}
		for _, l := range []typed{
			{text: "muster validate app", says: []string{"ok: listener, 1 component, 1 instance"}},
			{text: "muster slider create e1 --appdef app --wait 60"},
			{text: "muster command e1/listener-0 WHO", says: []string{"listener-0 at port …"}},
			{text: "muster slider exports e1", says: []string{`… "value": "http://127.0.0.1:…",`}},
			{text: "muster slider stop e1", says: []string{"e1: stopped by …"}},
		} {
			l.line = e.line
			follows(t, d, "doc/scripts.md", "", l)
		}
	}
}

// TestPackageExamples lays out the packages that the guide of packages spells out and runs them.
func TestPackageExamples(t *testing.T) {
	all := examples(read(t, "doc/packages.md"))
	if len(all) == 0 {
		t.Fatal("the guide has no example")
	}
	for _, e := range all {
		d := newDesk(t)
		for name, text := range e.files {
			d.write(filepath.Join("app", name), text)
		}
		if output, code := d.types("bin/muster package lint app"); code != 0 {
			t.Errorf("lint: exit code %d\n%s", code, output)
		}
		output, code := d.types("bin/muster run app --app-id shop")
		if code != 0 {
			t.Fatalf("run: exit code %d\n%s", code, output)
		}
		for _, line := range []string{"store-0 … | store 1 has port …", "store-1 … | store 2 has port …", "front-0 … | front at …, stores on 127.0.0.1,127.0.0.1"} {
			if !says(output, line) {
				t.Errorf("run: does not say %q but\n%s", line, output)
			}
		}
	}
}

// TestRoutesAreDescribed looks for each route of Slider's REST in the guide.
func TestRoutesAreDescribed(t *testing.T) {
	guide := read(t, "doc/packages.md")
	routes := found(t, "shim/publisher/routes.go", `(?m)^\t\{"([^"]+)", `)
	if len(routes) < 20 {
		t.Fatalf("found only the routes %v", routes)
	}
	for _, route := range routes {
		if !strings.Contains(guide, "`"+route+"`") {
			t.Errorf("doc/packages.md does not tell of %s", route)
		}
	}
}

// TestLibraryIsDescribed looks for each name that scripts import, and for each key of what they are told.
func TestLibraryIsDescribed(t *testing.T) {
	guide := read(t, "doc/scripts.md")
	_, all, ok := strings.Cut(read(t, "packages/slidershell/python/resource_management/__init__.py"), "__all__")
	if !ok {
		t.Fatal("the library does not say what it gives")
	}
	modules := []string{"environment", "exceptions", "functions", "logger", "re", "resources", "script", "shell", "source"}
	aliases := []string{"ClientComponentHasNoStatus", "ConfigDictionary", "Resource", "Source", "UnknownConfiguration"}
	names := matches(all, `"(\w+)"`)
	names = append(names, found(t, "shim/script/command.go", "`json:\"(\\w+)\"`")...)
	if len(names) < 50 {
		t.Fatalf("found only %v", names)
	}
	for _, name := range names {
		if !slices.Contains(append(modules, aliases...), name) && !regexp.MustCompile("`"+name+`\b`).MatchString(guide) {
			t.Errorf("doc/scripts.md does not tell of %s", name)
		}
	}
}

// found are the first groups of all matches in a file of the checkout.
func found(t *testing.T, file, form string) []string {
	t.Helper()
	return matches(read(t, file), form)
}

// matches are the first groups that are not empty of all matches.
func matches(text, form string) []string {
	var all []string
	for _, m := range regexp.MustCompile(form).FindAllStringSubmatch(text, -1) {
		i := slices.IndexFunc(m[1:], func(group string) bool { return group != "" })
		all = append(all, m[1+i])
	}
	return all
}

// TestLimitsAreDescribed looks for the bounds of archives in the guide.
func TestLimitsAreDescribed(t *testing.T) {
	guide := read(t, "doc/packages.md")
	for name, written := range map[string]string{
		"maxFiles = 100_000": "100,000", "maxBytes = 8 << 30": "8 GiB", "maxRatio = 200": "200", "maxDepth = 64": "64", "maxFree  = 256 << 20": "256 MiB",
	} {
		if !strings.Contains(read(t, "packages/limits.go"), name) || !strings.Contains(guide, written) {
			t.Errorf("packages/limits.go does not have %s, or the guide not %s", name, written)
		}
	}
}
