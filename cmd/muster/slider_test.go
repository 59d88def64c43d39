package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/tests/need"
)

func TestParseSlider(t *testing.T) {
	for _, test := range []struct {
		name, line, problem string
		args                []string
		given               map[string][][]string
		idle                []string
	}{
		{
			name: "words behind an option", line: "tf1 --compopt ps k v --component ps 2 --component worker -1", args: []string{"tf1"},
			given: map[string][][]string{"--compopt": {{"ps", "k", "v"}}, "--component": {{"ps", "2"}, {"worker", "-1"}}},
		},
		{
			name: "other names", line: "--comp ps 2 x -O k v --co a b c -ro k v --rco a b c", args: []string{"x"},
			given: map[string][][]string{
				"--component": {{"ps", "2"}}, "--option": {{"k", "v"}}, "--compopt": {{"a", "b", "c"}}, "--resopt": {{"k", "v"}}, "--rescompopt": {{"a", "b", "c"}},
			},
		},
		{
			name: "a value in the same word", line: "x --appdef=dir -Da=b", args: []string{"x"},
			given: map[string][][]string{"--appdef": {{"dir"}}, "-D": {{"a=b"}}}, idle: []string{"-D"},
		},
		{
			name: "without meaning, noted once", line: "x --queue a --queue b", args: []string{"x"},
			given: map[string][][]string{"--queue": {{"a"}, {"b"}}}, idle: []string{"--queue"},
		},
		{
			name: "all up to the next", line: "--components a b --live x", args: []string{"x"},
			given: map[string][][]string{"--components": {{"a", "b"}}, "--live": {{}}},
		},
		{name: "nearest name", line: "x --templat f", problem: `unknown option --templat (did you mean --template?)`},
		{name: "nothing like it", line: "x --zzzzzzzz", problem: "unknown option --zzzzzzzz;"},
		{
			name: "a value with dashes", line: "x --option muster.args --steps=5 -O a -1", args: []string{"x"},
			given: map[string][][]string{"--option": {{"muster.args", "--steps=5"}, {"a", "-1"}}},
		},
		{name: "too few", line: "x --compopt ps k", problem: "--compopt: got 2 words behind it, want COMPONENT KEY VALUE"},
		{name: "an option for a value", line: "x --component --wait 3", problem: "--component: got --wait behind it, want COMPONENT COUNT"},
		{name: "a value for none", line: "x --force=1", problem: "unknown option --force"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := parseSlider("create", sliderOptions(), strings.Fields(test.line))
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || exit.CodeOf(err) != 64 {
					t.Fatalf("got %v, want 64 and %s", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var idle []string
			for _, o := range p.idle {
				idle = append(idle, o.name)
			}
			got := []any{p.args, p.given, idle}
			want := []any{test.args, test.given, test.idle}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("-got +want\n%s", diff)
			}
		})
	}
}

func TestSliderVariables(t *testing.T) {
	t.Setenv("MUSTER_AGENT_TEMPLATE", "from.json")
	t.Setenv("MUSTER_AGENT_REQUIRE_LIMITS", "true")
	t.Setenv("MUSTER_AGENT_QUEUE", "unused")
	p, err := parseSlider("create", sliderOptions(), []string{"x"})
	if err != nil || p.one("--template") != "from.json" || !p.has("--require-limits") || len(p.idle) > 0 {
		t.Errorf("got %+v, %v", p.given, err)
	}
	p, err = parseSlider("create", sliderOptions(), []string{"x", "--template", "own.json"})
	if err != nil || p.one("--template") != "own.json" {
		t.Errorf("a variable beats an option: %+v, %v", p.given, err)
	}
	t.Setenv("MUSTER_AGENT_REQUIRE_LIMITS", "maybe")
	if _, err := parseSlider("create", sliderOptions(), []string{"x"}); exit.CodeOf(err) != 64 {
		t.Errorf("got %v, want 64", err)
	}
}

// TestSliderOptions holds the tables to each other: names are told apart, and a verb's options are among all.
func TestSliderOptions(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range sliderOptions() {
		for _, name := range append([]string{o.name}, o.also...) {
			if seen[name] {
				t.Errorf("%s stands for two", name)
			}
			seen[name] = true
		}
	}
	used := map[string]bool{}
	for _, v := range sliderVerbs() {
		for _, name := range append(v.options, sliderEverywhere...) {
			used[name] = true
			if !seen[name] {
				t.Errorf("%s takes %s, which is none", v.use, name)
			}
		}
	}
	for _, o := range sliderOptions() {
		if !used[o.name] {
			t.Errorf("nothing takes %s", o.name)
		}
	}
}

func TestWithoutOutput(t *testing.T) {
	var kept bytes.Buffer
	for _, line := range []string{
		"tf1: work folder /w\n", "worker-0     | step 1\n", "a-very-long-name-10 | x\n", "ps-1         | muster: running (attempt 1, generation 1)\n",
		"last 2 lines of x:\n", "  worker-0 | quoted\n", "plain - 3 | text\n",
	} {
		if n, err := (withoutOutput{&kept}).Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%q: %d, %v", line, n, err)
		}
	}
	want := "tf1: work folder /w\nps-1         | muster: running (attempt 1, generation 1)\nlast 2 lines of x:\n  worker-0 | quoted\nplain - 3 | text\n"
	if diff := cmp.Diff(kept.String(), want); diff != "" {
		t.Errorf("-got +want\n%s", diff)
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "disk is full": "disk is full", " a\n\tb\x1b[2J ": "a b [2J", strings.Repeat("ä", 300): strings.Repeat("ä", 200) + "…",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// made is an app's folder as create leaves it, with something in its work folder.
func made(t *testing.T) *sliderApp {
	t.Helper()
	home := sliderHome(filepath.Join(t.TempDir(), "slider"))
	a := home.app("tf1")
	if err := os.MkdirAll(a.path("work/checkpoint"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.record = sliderRecord{Version: 1, App: "tf1"}
	if err := a.record.write(a.dir); err != nil {
		t.Fatal(err)
	}
	return a
}

// keep writes a file that nobody may remove, and gives a check that it is there.
func keep(t *testing.T, dir string) func() {
	t.Helper()
	path := filepath.Join(dir, "precious")
	if err := os.WriteFile(path, []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestRemoveTakesItsOwnOnly(t *testing.T) {
	a := made(t)
	outside := t.TempDir()
	there, beside := keep(t, outside), keep(t, a.dir)
	for _, link := range []string{"work/checkpoint/link", "definition"} {
		if err := os.Symlink(outside, a.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	others, err := a.remove()
	if err != nil || cmp.Diff(others, []string{a.path("precious")}) != "" {
		t.Errorf("got %v, %v", others, err)
	}
	there()
	beside()
	for _, gone := range []string{"work", "definition", sliderMark} {
		if _, err := os.Lstat(a.path(gone)); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
}

func TestRemoveRefusesMounts(t *testing.T) {
	need.Root(t)
	a := made(t)
	outside := t.TempDir()
	there := keep(t, outside)
	point := a.path("work/check point")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(outside, point, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	others, err := a.remove()
	there()
	if err == nil || !strings.Contains(err.Error(), "mounted below it: "+point) {
		t.Errorf("got %v, %v", others, err)
	}
	if err := a.read(); err != nil {
		t.Errorf("it cannot be destroyed later: %v", err)
	}
	if err := unix.Unmount(point, 0); err != nil {
		t.Fatal(err)
	}
	if others, err := a.remove(); err != nil || len(others) > 0 {
		t.Errorf("got %v, %v", others, err)
	}
	there()
}

func TestOpenRefuses(t *testing.T) {
	for name, spoil := range map[string]func(a *sliderApp) error{
		"a link to another's": func(a *sliderApp) error {
			if err := os.Rename(a.dir, a.dir+"2"); err != nil {
				return err
			}
			return os.Symlink(a.dir+"2", a.dir)
		},
		"a record that is a link": func(a *sliderApp) error {
			if err := os.Rename(a.path(sliderMark), a.path("x")); err != nil {
				return err
			}
			return os.Symlink("x", a.path(sliderMark))
		},
		"another app's record": func(a *sliderApp) error {
			return (&sliderRecord{Version: 1, App: "tf2"}).write(a.dir)
		},
		"a later form": func(a *sliderApp) error {
			return (&sliderRecord{Version: 2, App: "tf1"}).write(a.dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := made(t)
			if err := spoil(a); err != nil {
				t.Fatal(err)
			}
			if _, err := sliderHome(filepath.Dir(a.dir)).open("tf1"); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func TestScratchClearsItsOwnRemains(t *testing.T) {
	home := sliderHome(t.TempDir())
	for _, name := range []string{".tf1+old", ".tf1-b+old", "tf1"} {
		if err := os.Mkdir(filepath.Join(string(home), name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := home.scratch("tf1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(string(home), ".tf1+old")); err == nil {
		t.Error("a killed command's folder is left")
	}
	for _, kept := range []string{dir, filepath.Join(string(home), ".tf1-b+old"), filepath.Join(string(home), "tf1")} {
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
}
