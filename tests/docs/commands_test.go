package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	helpVerb  = regexp.MustCompile(`(?m)^  (?:muster )?([a-z][a-z-]*) +[A-Z]`)
	helpLine  = regexp.MustCompile(`(?m)^ +(-\S.*?)(?:  .*)?$`)
	helpFlag  = regexp.MustCompile(`(?:^|, )(--?[A-Za-z][A-Za-z-]*)`)
	writtenIn = regexp.MustCompile(`^(?:bin/|ExecStart=/usr/local/bin/)?muster ([a-z-]+)(?: |$)`)
)

// parents are the verbs that have verbs below them.
var parents = []string{"package", "slider", "ui"}

// notVerb is what stands in the place of a verb where a document speaks of all of them.
var notVerb = regexp.MustCompile(`^(?:#|\[|[A-Z…-])`)

// verbs are those that `muster help` lists, further topics with them.
func verbs(t *testing.T, d desk) []string {
	t.Helper()
	return below(t, d, "bin/muster help")
}

// below are the verbs that a help lists.
func below(t *testing.T, d desk, ask string) []string {
	t.Helper()
	help, code := d.types(ask)
	_, list, ok := strings.Cut(help, "Available Commands:\n")
	if code != 0 || !ok {
		t.Fatalf("%s: exit code %d\n%s", ask, code, help)
	}
	var found []string
	for _, m := range helpVerb.FindAllStringSubmatch(list, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestVerbsAreDescribed(t *testing.T) {
	described := anchors(read(t, "doc/commands.md"))
	all := verbs(t, newDesk(t))
	for _, want := range []string{"run", "agent", "plan", "validate", "ps", "status", "logs", "stop", "signal", "exec", "forget", "doctor", "version", "completion", "exit-codes"} {
		if !slices.Contains(all, want) {
			t.Errorf("muster help does not list %s", want)
		}
	}
	for _, verb := range all {
		if verb != "help" && !described["muster-"+verb] {
			t.Errorf("doc/commands.md does not describe muster %s", verb)
		}
	}
}

// TestCommandsInDocumentsExist checks the verb and the flags of every command line that a document shows.
func TestCommandsInDocumentsExist(t *testing.T) {
	d := newDesk(t)
	known := map[string]map[string]bool{"help": {}}
	for _, verb := range verbs(t, d) {
		if known[verb] == nil {
			known[verb] = flagsOf(d, verb)
		}
	}
	for _, above := range parents {
		for _, verb := range below(t, d, "bin/muster "+above+" --help") {
			known[above+" "+verb] = flagsOf(d, above+" "+verb)
		}
	}
	seen := 0
	for _, name := range documents(t) {
		for _, s := range spans(read(t, name)) {
			m := writtenIn.FindStringSubmatch(s.code)
			if m == nil {
				continue
			}
			seen++
			verb := m[1]
			if words := strings.Fields(s.code); slices.Contains(parents, verb) && len(words) > 2 && !notVerb.MatchString(words[2]) {
				verb += " " + words[2]
			}
			flags, ok := known[verb]
			if !ok {
				t.Errorf("%s:%d: %s: there is no verb %s", name, s.line, s.code, verb)
				continue
			}
			for _, flag := range flagsIn(s.code) {
				if !flags[flag] {
					t.Errorf("%s:%d: %s: muster %s has no flag %s", name, s.line, s.code, verb, flag)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("saw only %d command lines: they are not found any more", seen)
	}
}

// flagsOf are a verb's flags as they are typed.
func flagsOf(d desk, verb string) map[string]bool {
	help, _ := d.types("bin/muster " + verb + " --help")
	found := map[string]bool{"-h": true, "--help": true}
	for _, line := range helpLine.FindAllStringSubmatch(help, -1) {
		for _, m := range helpFlag.FindAllStringSubmatch(line[1], -1) {
			found[m[1]] = true
		}
	}
	return found
}

// quoted is what a shell takes as it is written.
var quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// flagsIn are the flags of a command line, without their values and without what a shell would read as another command.
func flagsIn(line string) []string {
	var found []string
	line, _, _ = strings.Cut(quoted.ReplaceAllString(line, "''"), " #")
	for word := range strings.FieldsSeq(line) {
		if slices.Contains([]string{"|", "&&", "&", ";", "--"}, word) { // behind it are another program's
			break
		}
		if strings.HasPrefix(word, "-") && len(word) > 1 {
			name, _, _ := strings.Cut(word, "=")
			found = append(found, strings.Trim(name, "[],.;"))
		}
	}
	return found
}

var (
	makeCall   = regexp.MustCompile(`^make ([a-z]+)\b`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z]+):`)
	treePath   = regexp.MustCompile(`^(?:appdef|cmd|doc|packages|registry|scripts|shim|tests)/[\w./-]+$`)
)

// TestTreeIsAsDescribed looks for the targets and the files that documents name.
func TestTreeIsAsDescribed(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	seen := 0
	for _, name := range documents(t) {
		for _, s := range spans(read(t, name)) {
			if m := makeCall.FindStringSubmatch(s.code); m != nil {
				seen++
				if !targets[m[1]] {
					t.Errorf("%s:%d: %s: the Makefile has no target %s", name, s.line, s.code, m[1])
				}
			}
			ownTree := strings.HasPrefix(name, "packages/")     // it speaks of the package's folders
			made := strings.HasPrefix(s.code, "doc/measured")   // by make long
			record := strings.HasPrefix(name, "doc/decisions/") // of its day, never rewritten
			if !treePath.MatchString(s.code) || ownTree || made || record {
				continue
			}
			seen++
			if _, err := os.Stat(filepath.Join(checkout, s.code)); err != nil {
				t.Errorf("%s:%d: there is no %s", name, s.line, s.code)
			}
		}
	}
	if seen < 20 {
		t.Errorf("saw only %d targets and paths: they are not found any more", seen)
	}
}
