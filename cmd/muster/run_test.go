package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/mask"
)

// Every flag of run reaches the run in the background, and the program behind -- has its own words alone.
func TestDetachedArgs(t *testing.T) {
	values := map[string][]string{
		"bool": {"true"}, "int": {"7"}, "duration": {"7s"}, "string": {"some=thing, more"},
		"stringArray": {"A=1,2", "B= x"}, "stringSlice": {"a", "b"},
	}
	commands := [][]string{
		{"DIR"},
		{"--", "python3", "two.py", "1", "--env", "OF=its", "--", "--set=of=its", "--detach"},
	}
	seen := 0
	newRun(console.Streams{}).Flags().VisitAll(func(f *pflag.Flag) {
		seen++
		if values[f.Value.Type()] == nil {
			t.Errorf("--%s: want a value for a flag of type %s in this test", f.Name, f.Value.Type())
		}
		for _, command := range commands {
			typed, started := newRun(console.Streams{}), newRun(console.Streams{})
			var words []string
			for _, value := range values[f.Value.Type()] {
				words = append(words, "--"+f.Name+"="+value)
			}
			if err := typed.ParseFlags(append(words, command...)); err != nil {
				t.Errorf("%q: %v", words, err)
				continue
			}
			shown, variables := mask.Hand(detachedArgs(typed, typed.Flags().Args()))
			for _, v := range variables {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			args, err := mask.Take(shown)
			if err == nil {
				err = started.ParseFlags(args[1:]) // behind the verb
			}
			if err != nil {
				t.Errorf("%q before %q: %v", words, command, err)
				continue
			}
			want := typed.Flags().Args()
			if got := started.Flags().Args(); !slices.Equal(got, want) || started.ArgsLenAtDash() != typed.ArgsLenAtDash() {
				t.Errorf("%q: got the words %q, want %q", words, got, want)
			}
			got, wanted := started.Flags().Lookup(f.Name).Value.String(), typed.Flags().Lookup(f.Name).Value.String()
			if f.Name == detachFlag {
				wanted = "false"
			}
			if got != wanted {
				t.Errorf("%q before %q: got %q, want %q", words, command, got, wanted)
			}
		}
	})
	if seen < 30 {
		t.Errorf("got %d flags, want all of run's", seen)
	}
}
