package slider

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/exit"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, line, problem string
		args, ignored       []string
		given               map[string][][]string
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
			given: map[string][][]string{"--appdef": {{"dir"}}, "-D": {{"a=b"}}}, ignored: []string{"-D"},
		},
		{
			name: "without meaning, noted once", line: "x --queue a --queue b", args: []string{"x"},
			given: map[string][][]string{"--queue": {{"a"}, {"b"}}}, ignored: []string{"--queue"},
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
			c, err := parse(console.Streams{}, "create", options(), strings.Fields(test.line))
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || exit.CodeOf(err) != 64 {
					t.Fatalf("got %v, want 64 and %s", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ignored []string
			for _, o := range c.ignored {
				ignored = append(ignored, o.Name())
			}
			got := []any{c.args, c.given, ignored}
			want := []any{test.args, test.given, test.ignored}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("-got +want\n%s", diff)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	t.Setenv("MUSTER_AGENT_TEMPLATE", "from.json")
	t.Setenv("MUSTER_AGENT_REQUIRE_LIMITS", "true")
	t.Setenv("MUSTER_AGENT_QUEUE", "unused")
	c, err := parse(console.Streams{}, "create", options(), []string{"x"})
	if err != nil || c.one("--template") != "from.json" || !c.has("--require-limits") || len(c.ignored) > 0 {
		t.Errorf("got %+v, %v", c.given, err)
	}
	c, err = parse(console.Streams{}, "create", options(), []string{"x", "--template", "own.json"})
	if err != nil || c.one("--template") != "own.json" {
		t.Errorf("a variable beats an option: %+v, %v", c.given, err)
	}
	t.Setenv("MUSTER_AGENT_REQUIRE_LIMITS", "maybe")
	if _, err := parse(console.Streams{}, "create", options(), []string{"x"}); exit.CodeOf(err) != 64 {
		t.Errorf("got %v, want 64", err)
	}
}

// TestOptions holds the tables to each other: names are told apart, and a verb's options are among all.
func TestOptions(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range options() {
		for _, name := range o.all() {
			if seen[name] {
				t.Errorf("%s stands for two", name)
			}
			seen[name] = true
		}
	}
	used := map[string]bool{}
	for _, v := range Verbs(nil) {
		for _, name := range append(v.options, everywhere...) {
			used[name] = true
			if !seen[name] {
				t.Errorf("%s takes %s, which is none", v.Use, name)
			}
		}
	}
	for _, o := range options() {
		if !used[o.Name()] {
			t.Errorf("nothing takes %s", o.Name())
		}
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
