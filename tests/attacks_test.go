package tests

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of attacks in SECURITY.md")

// testFunction is the head of a test.
var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t `)

// allTests are the tests of this repository, and the scripts that are tests, as ROOM NAME; each with the text of its room.
func allTests(t *testing.T) map[string]*strings.Builder {
	t.Helper()
	all, rooms := map[string]*strings.Builder{}, map[string]*strings.Builder{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		room, err := filepath.Rel("..", filepath.Dir(path))
		if err != nil {
			return err
		}
		if rooms[room] == nil {
			rooms[room] = &strings.Builder{}
		}
		if scripts, ok := strings.CutSuffix(room, "/testdata/script"); ok && strings.HasSuffix(d.Name(), ".txtar") {
			all[scripts+" "+d.Name()] = &strings.Builder{}
		}
		if ok, _ := filepath.Match("test_*.py", d.Name()); ok {
			all[room+" "+d.Name()] = &strings.Builder{}
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		rooms[room].Write(text)
		for _, found := range testFunction.FindAllStringSubmatch(string(text), -1) {
			all[room+" "+found[1]] = rooms[room]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func isAttack(test string) bool {
	return strings.Contains(test, " TestAttack") || strings.Contains(test, " attack_")
}

// machineList is what scripts/test-v2 runs of a room: as root, and as the user.
func machineList(t *testing.T) map[string][2]*regexp.Regexp {
	t.Helper()
	script, err := os.ReadFile("../scripts/test-v2")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(script), "\nlist='")
	list, _, _ = strings.Cut(list, "'\n")
	all := map[string][2]*regexp.Regexp{}
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		var run [2]*regexp.Regexp
		for i, word := range words[1:] {
			if word != "-" {
				run[i] = regexp.MustCompile(word)
			}
		}
		all[words[0]] = run
	}
	return all
}

func TestEachAttackIsInTheTable(t *testing.T) {
	exist, machine := allTests(t), machineList(t)
	long, err := os.ReadFile("../scripts/long")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, a := range attempts() {
		for as, c := range []cell{a.root, a.named, a.user} {
			at := fmt.Sprintf("%s (%s), agent %d", a.what, a.engine, as)
			if c.test == "" {
				if c.why == "" {
					t.Errorf("%s: neither a test nor why there is none", at)
				}
				continue
			}
			named[c.test] = true
			if exist[c.test] == nil {
				t.Errorf("%s: there is no test %s", at, c.test)
			}
			on := strings.Fields(c.on)
			v1, v2, inLong := slices.Contains(on, "v1"), slices.Contains(on, "v2"), slices.Contains(on, "long")
			if c.why == "" && c.on != "any" && (!v1 || !v2 && !inLong) {
				t.Errorf("%s: tried on %q, and not said why not on the other", at, c.on)
			}
			room, name, _ := strings.Cut(c.test, " ")
			if run := machine[room][as/2]; v2 && (run == nil || !run.MatchString(name)) {
				t.Errorf("%s: scripts/test-v2 does not run %s", at, c.test)
			}
			if inLong && !strings.Contains(string(long), "PACKAGES="+room+" RUN='^TestAttack' scripts/test-v2") {
				t.Errorf("%s: scripts/long does not run %s on cgroup v2", at, c.test)
			}
		}
	}
	for test := range exist {
		if isAttack(test) && !named[test] {
			t.Errorf("%s is not in the table of attacks (tests/attacktable_test.go)", test)
		}
	}
}

// table prints the attacks for SECURITY.md.
func table() string {
	var rows, notes strings.Builder
	var reasons []string
	shown := func(c cell) string {
		word := strings.ReplaceAll(strings.ReplaceAll(c.on, "any", "yes"), "long", "v2*")
		if c.test != "" && !strings.Contains(c.on, "v1") && c.on != "any" || c.test == "" || c.why != "" {
			if !slices.Contains(reasons, c.why) {
				reasons = append(reasons, c.why)
			}
			word += fmt.Sprintf(" (%d)", slices.Index(reasons, c.why)+1)
		}
		return strings.TrimSpace(word)
	}
	for _, a := range attempts() {
		var tests []string
		for _, c := range []cell{a.root, a.named, a.user} {
			if c.test != "" && !slices.Contains(tests, "`"+c.test+"`") {
				tests = append(tests, "`"+c.test+"`")
			}
		}
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s | %s | %s |\n", a.by, a.what, a.engine, shown(a.root), shown(a.named),
			shown(a.user), strings.Join(tests, ", "))
	}
	for i, why := range reasons {
		fmt.Fprintf(&notes, "%d. %s\n", i+1, why)
	}
	return "| by | attack | engine | root | root, `muster.user` | ordinary user | test |\n|---|---|---|---|---|---|---|\n" +
		rows.String() + "\n" + notes.String()
}

func TestTheTableOfAttacksIsInSecurity(t *testing.T) {
	const page, begin, end = "../SECURITY.md", "<!-- attacks: begin -->\n", "<!-- attacks: end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks %q and %q", page, begin, end)
	}
	want := before + begin + table() + end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the table of %s is not that of the tests: make golden", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // a page of the repository
		t.Fatal(err)
	}
}
