package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// told is a table of variables: what a guide says of each, and for whom.
type told struct {
	name string
	form *regexp.Regexp
	only []string // generations of PAI or app types of HBox; none: all
}

func (v told) holds(kind string) bool { return len(v.only) == 0 || slices.Contains(v.only, kind) }

var variableName = regexp.MustCompile("`([A-Z_a-z]+)`")

// toldBy are the rows of the table whose first column is called so. R, I and L between underscores stand for a role's
// name, a number and a label.
func toldBy(t *testing.T, document, column string) []told {
	t.Helper()
	stands := map[string]string{"R": `(?:ps_server|worker)`, "I": `\d+`, "L": `(?:http|ssh|grpc|log[._]tcp)`}
	var all []told
	_, table, ok := strings.Cut(document, "\n| "+column+" |")
	if !ok {
		t.Fatalf("there is no table whose first column is %s", column)
	}
	for line := range strings.Lines(strings.SplitN(table, "\n\n", 2)[0]) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 3 {
			continue
		}
		var only []string
		if text := strings.TrimSpace(cells[2]); text != "" {
			only = strings.Split(text, ", ")
		}
		for _, m := range variableName.FindAllStringSubmatch(cells[0], -1) {
			parts := strings.Split(m[1], "_")
			for i, part := range parts {
				if form, ok := stands[part]; ok {
					parts[i] = form
				}
			}
			all = append(all, told{m[1], regexp.MustCompile("^" + strings.Join(parts, "_") + "$"), only})
		}
	}
	return all
}

// promised are the variables of a golden table by the second word of its headings, without a prefix.
func promised(t *testing.T, file, prefix string) map[string][]string {
	t.Helper()
	all, kind := map[string][]string{}, ""
	for line := range strings.Lines(read(t, file)) {
		name, _, isValue := strings.Cut(strings.TrimSpace(line), "=")
		switch words := strings.Fields(line); {
		case strings.HasPrefix(line, "== PAI "):
			kind = strings.TrimSuffix(words[2], ":")
		case strings.HasPrefix(line, "== "):
			kind = words[1]
		case isValue && strings.HasPrefix(line, "  ") && strings.HasPrefix(name, prefix):
			all[kind] = append(all[kind], strings.TrimPrefix(name, prefix))
		}
	}
	return all
}

// compare holds a table to a golden one, both ways.
func compare(t *testing.T, guide string, table []told, golden map[string][]string) {
	t.Helper()
	if len(table) < 15 || len(golden) < 3 {
		t.Fatalf("%s: found only %d variables, and %d kinds of processes that are told", guide, len(table), len(golden))
	}
	for kind, names := range golden {
		for _, name := range names {
			if !slices.ContainsFunc(table, func(v told) bool { return v.form.MatchString(name) && v.holds(kind) }) {
				t.Errorf("%s does not say that %s is told %s", guide, kind, name)
			}
		}
		for _, v := range table {
			if v.holds(kind) && !slices.ContainsFunc(names, v.form.MatchString) {
				t.Errorf("%s says that %s is told %s, and it is not", guide, kind, v.name)
			}
		}
	}
}

// TestPAIVariables compares the guide's table with what a task is told in each generation.
func TestPAIVariables(t *testing.T) {
	const file = "shim/frameworks/testdata/pai.golden"
	guide := read(t, "doc/pai.md")
	golden := promised(t, file, "PAI_")
	compare(t, "doc/pai.md", toldBy(t, guide, "`PAI_…`"), golden)
	for kind, names := range promised(t, file, "") {
		for _, name := range names {
			if prefixed := strings.HasPrefix(name, "PAI_") || strings.HasPrefix(name, "QIZHI_"); !prefixed && !strings.Contains(guide, "`"+name+"`") {
				t.Errorf("doc/pai.md does not say that %s is told %s", kind, name)
			}
		}
	}
}

// TestHBoxVariables compares the guide's table with what a process of each app type is told.
func TestHBoxVariables(t *testing.T) {
	golden := promised(t, "shim/frameworks/testdata/hbox.golden", "")
	compare(t, "doc/hbox.md", toldBy(t, read(t, "doc/hbox.md"), "variable"), golden)
}

// TestHBoxOptionsAreListed looks in the guide for each option that has no effect.
func TestHBoxOptionsAreListed(t *testing.T) {
	guide := read(t, "doc/hbox.md")
	idle := found(t, "appdef/hbox/options.go", `\{\s*name: "([\w-]+)"[^{}]*(?:\{[^{}]*\}[^{}]*)?idle: true`)
	if len(idle) < 4 {
		t.Fatalf("found only %v", idle)
	}
	for _, name := range idle {
		if !strings.Contains(guide, "`--"+name+"`") {
			t.Errorf("doc/hbox.md does not say that --%s has no effect", name)
		}
	}
	for _, kind := range found(t, "appdef/hbox/kinds.go", `\{name: "([A-Z0-9]+)", framework`) {
		if !regexp.MustCompile(`\b` + kind + `\b`).MatchString(guide) {
			t.Errorf("doc/hbox.md does not tell of the app type %s", kind)
		}
	}
}

// TestPAIKeys looks for each key of a job file in the guide.
func TestPAIKeys(t *testing.T) {
	guide, code := read(t, "doc/pai.md"), read(t, "appdef/pai/load.go")
	_, lists, ok := strings.Cut(code, "func jobKeys()")
	if !ok {
		t.Fatal("appdef/pai has no list of keys")
	}
	lists, _, _ = strings.Cut(lists, "var jobForm")
	keys := matches(lists, `"(\w+)"`)
	for _, file := range []string{"second", "secondrole", "plugins"} {
		for _, known := range matches(read(t, "appdef/pai/"+file+".go"), `(?s)\.knows\(\[\]string\{(.*?)\}\)`) {
			keys = append(keys, matches(known, `"(\w+)"`)...)
		}
	}
	if len(keys) < 25 {
		t.Fatalf("found only the keys %v", keys)
	}
	for _, key := range keys {
		if !regexp.MustCompile("`\\.?(?:\\w+\\[\\]\\.)?" + key + "\\b").MatchString(guide) {
			t.Errorf("doc/pai.md does not tell of %s", key)
		}
	}
}
