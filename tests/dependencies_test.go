package tests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dependency is a line of the table in doc/dependencies.md.
type dependency struct{ path, atLeast, licence string }

// goModule is what we read of `go list -m -json`.
type goModule struct {
	Path, Version, Dir string
	Indirect           bool
}

func TestDependenciesAreListed(t *testing.T) {
	text, err := os.ReadFile("../doc/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]dependency{}
	for _, d := range dependencies(string(text)) {
		listed[d.path] = d
	}
	modules := requiredModules(t)
	imported := importedModules(t, modules)
	for _, path := range imported {
		if _, ok := listed[path]; !ok {
			t.Errorf("%s is imported and not listed in doc/dependencies.md", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(listed)) {
		m, required := modules[path]
		switch {
		case !required:
			t.Errorf("%s is listed in doc/dependencies.md and not required by go.mod", path)
		case !slices.Contains(imported, path):
			t.Errorf("%s is listed in doc/dependencies.md and imported nowhere", path)
		case compareVersions(m.Version, listed[path].atLeast) < 0:
			t.Errorf("%s: got %s, want at least %s", path, m.Version, listed[path].atLeast)
		}
		if got := licence(m.Dir); required && got != listed[path].licence {
			t.Errorf("%s: its licence file says %s, doc/dependencies.md %s", path, got, listed[path].licence)
		}
	}
}

// TestDependenciesAreCounted holds the number that doc/dependencies.md names: one module more is a decision.
func TestDependenciesAreCounted(t *testing.T) {
	text, err := os.ReadFile("../doc/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	for _, m := range requiredModules(t) {
		if !m.Indirect {
			direct++
		}
	}
	said := regexp.MustCompile(`There are ([0-9]+) of them`).FindSubmatch(text)
	if said == nil {
		t.Fatal("doc/dependencies.md does not say how many there are")
	}
	if got := string(said[1]); got != strconv.Itoa(direct) {
		t.Errorf("doc/dependencies.md says that there are %s, go.mod requires %d directly", got, direct)
	}
	if got := len(dependencies(string(text))); got != direct {
		t.Errorf("doc/dependencies.md lists %d, go.mod requires %d directly", got, direct)
	}
}

func TestGoIsNewEnough(t *testing.T) {
	doc, err := os.ReadFile("../doc/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`Go itself: at least ([0-9.]+[0-9])`).FindSubmatch(doc)
	got := regexp.MustCompile(`(?m)^go ([0-9.]+)$`).FindSubmatch(mod)
	if want == nil || got == nil {
		t.Fatalf("no version of Go in doc/dependencies.md (%q) or go.mod (%q)", want, got)
	}
	if compareVersions(string(got[1]), string(want[1])) < 0 {
		t.Errorf("go.mod: got go %s, want at least %s", got[1], want[1])
	}
}

func TestCompareVersions(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"v1.2.3", "v1.2.3", 0},
		{"v1.10.0", "v1.9.9", 1},
		{"v1.2.3", "v2.0.0", -1},
		{"v0.0.0-20260727124030-b80ff77dac4f", "v0.0.0-20260727124030", 1},
		{"v0.0.0-20250101000000-b80ff77dac4f", "v0.0.0-20260727124030", -1},
		{"1.26.7", "1.26.10", -1},
	} {
		if got := compareVersions(tt.a, tt.b); got != tt.want {
			t.Errorf("%s against %s: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestDependencyTable(t *testing.T) {
	got := dependencies("text\n| `a/b` | v1.2.3 | MIT | why |\n| tool 1.0 | `x/go.mod` | MIT | why |\n|---|---|---|---|\n")
	if want := []dependency{{"a/b", "v1.2.3", "MIT"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// dependencies are the lines of the first kind of table: module, version, licence, why.
func dependencies(text string) []dependency {
	var all []dependency
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v[^ ]+) \\| ([^ ]+) \\| .+ \\|$").FindAllStringSubmatch(text, -1) {
		all = append(all, dependency{m[1], m[2], m[3]})
	}
	return all
}

// requiredModules are the modules of the build list, by path, ours left out.
func requiredModules(t *testing.T) map[string]goModule {
	t.Helper()
	modules := map[string]goModule{}
	d := json.NewDecoder(strings.NewReader(goList(t, "-m", "-json=Path,Version,Dir,Indirect", "all")))
	for d.More() {
		var m goModule
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m.Path != module {
			modules[m.Path] = m
		}
	}
	return modules
}

// importedModules are the modules that our packages and their tests import, on any of our platforms' default build.
func importedModules(t *testing.T, modules map[string]goModule) []string {
	t.Helper()
	out := goList(t, "-e", "-f", `{{join .Imports "\n"}}{{"\n"}}{{join .TestImports "\n"}}{{"\n"}}{{join .XTestImports "\n"}}`, module+"/...")
	found := map[string]bool{}
	for imp := range strings.FieldsSeq(out) {
		for dir := imp; dir != "."; dir = filepath.Dir(dir) {
			if _, ok := modules[dir]; ok {
				found[dir] = true
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return string(out)
}

// licence is the SPDX name of the licence file in a module's folder, as far as we meet them.
func licence(dir string) string {
	var files []string
	for _, pattern := range []string{"LICEN[SC]E*", "COPYING*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // only a bad pattern is an error
		files = append(files, found...)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err.Error()
		}
		text := strings.Join(strings.Fields(string(b)), " ")
		for _, known := range []struct{ says, name string }{
			{"Mozilla Public License, version 2.0", "MPL-2.0"},
			{"Apache License Version 2.0", "Apache-2.0"},
			{"Neither the name of", "BSD-3-Clause"},
			{"Redistributions in binary form must reproduce", "BSD-2-Clause"}, // which BSD-3-Clause says as well
			{"Permission is hereby granted, free of charge", "MIT"},
		} {
			if strings.Contains(text, known.says) {
				return known.name
			}
		}
	}
	return fmt.Sprintf("unknown (%s)", strings.Join(files, " "))
}

// compareVersions orders versions by their numbers, then by what follows the first dash.
func compareVersions(a, b string) int {
	a, aRest, _ := strings.Cut(strings.TrimPrefix(a, "v"), "-")
	b, bRest, _ := strings.Cut(strings.TrimPrefix(b, "v"), "-")
	return cmp.Or(slices.Compare(numbers(a), numbers(b)), cmp.Compare(aRest, bRest))
}

func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = -1 // older than any number
		}
		out = append(out, n)
	}
	return out
}
