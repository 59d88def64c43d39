package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	promiseTest  = regexp.MustCompile("`([^`]+)`")
	promiseLacks = regexp.MustCompile(`(?:^|; )not(?: yet)?: `)
	buildTag     = regexp.MustCompile(`(?m)^//go:build (.*)$`)
	// asPromise is what stands in the last column: tests, or why there is none; or first tests and then what they lack.
	asPromise = regexp.MustCompile("^(?:`[^`]+`(?:, `[^`]+`)*(?:; not(?: yet)?: .+)?|not(?: yet)?: .+)$")
)

// tagged are the tests that stand behind a build tag which scripts/test does not set.
func tagged(t *testing.T, room string) string {
	t.Helper()
	var names strings.Builder
	files, err := filepath.Glob(filepath.Join("..", room, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tag := buildTag.FindStringSubmatch(string(text))
		if tag == nil || tag[1] == "race" || tag[1] == "!race" { // scripts/test runs a room with race_off_test.go twice
			continue
		}
		for _, found := range testFunction.FindAllStringSubmatch(string(text), -1) {
			names.WriteString(" " + found[1] + " ")
		}
	}
	return names.String()
}

// TestPromisesAreShown looks for the tests that doc/coverage.md names. Its commands are looked for by tests/docs.
func TestPromisesAreShown(t *testing.T) {
	text, err := os.ReadFile("../doc/coverage.md")
	if err != nil {
		t.Fatal(err)
	}
	exist, rows := allTests(t), map[string]int{}
	heading := ""
	for i, line := range strings.Split(string(text), "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			heading = name
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| test |") {
			continue
		}
		if len(cells) != 3 {
			t.Errorf("doc/coverage.md:%d: %d columns, want a promise, a command and a test", i+1, len(cells))
			continue
		}
		rows[heading]++
		last := strings.TrimSpace(cells[2])
		if !asPromise.MatchString(last) {
			t.Errorf("doc/coverage.md:%d: got %q, want `ROOM TEST`, …, or not: WHY, or `ROOM TEST`; not: WHAT", i+1, last)
		}
		shown := last
		if at := promiseLacks.FindStringIndex(last); at != nil {
			shown = last[:at[0]]
		}
		for _, m := range promiseTest.FindAllStringSubmatch(shown, -1) {
			room, name, _ := strings.Cut(m[1], " ")
			name, part, _ := strings.Cut(name, "/")
			test := room + " " + name
			switch in := exist[test]; {
			case in == nil:
				t.Errorf("doc/coverage.md:%d: there is no test %s", i+1, test)
			case part != "" && !regexp.MustCompile(`["/]`+regexp.QuoteMeta(part)+`"`).MatchString(in.String()): // or a file of a folder
				t.Errorf("doc/coverage.md:%d: %s has no part %q", i+1, test, part)
			case strings.Contains(tagged(t, room), " "+name+" "):
				t.Errorf("doc/coverage.md:%d: %s runs behind a build tag alone", i+1, test)
			}
		}
	}
	for _, want := range []string{"HBox's manual", "HBox's data management", "QIZHI's manual", "SCM's manual", "Slider's TensorFlow manual", "By feature"} {
		if rows[want] < 5 {
			t.Errorf("doc/coverage.md: %d rows below %q", rows[want], want)
		}
	}
}
