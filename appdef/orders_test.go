package appdef

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestStartsAfter(t *testing.T) {
	order := func(component, command string, requires ...Requirement) CommandOrder {
		return CommandOrder{Component: component, Command: command, Requires: requires}
	}
	a := App{CommandOrders: []CommandOrder{
		order("worker", "START", Requirement{"ps", "INSTALLED"}, Requirement{"db", "STARTED"}),
		order("worker", "STOP", Requirement{"ps", "STOPPED"}),
		order("ps", "START", Requirement{"db", "INSTALLED"}),
		order("worker", "START", Requirement{"cache", "INSTALLED"}, Requirement{"ps", "STARTED"}, Requirement{"db", "INSTALLED"}),
	}}
	for component, want := range map[string][]Requirement{
		"worker": {{"ps", "STARTED"}, {"db", "STARTED"}, {"cache", "INSTALLED"}},
		"ps":     {{"db", "INSTALLED"}},
		"db":     nil,
	} {
		if got := a.StartsAfter(component); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", component, got, want)
		}
	}
	if a.CommandOrders[0].Requires[0].State != "INSTALLED" {
		t.Error("the definition was changed")
	}
}

func TestStart(t *testing.T) {
	script, missing := &CommandScript{Script: "scripts/x.py"}, &CommandScript{Script: "scripts/x.py", Missing: true}
	shell := []Command{{Name: "START", Exec: "sleep 1", Type: "SHELL"}}
	for _, test := range []struct {
		name                string
		framework, key, run string // muster.framework, muster.start, muster.command
		script              *CommandScript
		commands            []Command
		start, from, text   string
	}{
		{"a script", "tensorflow", "", "", script, nil, StartScript, "commandScript", ""},
		{"a script of no framework", "none", "", "", script, nil, StartScript, "commandScript", ""},
		{"a missing script", "tensorflow", "", "", missing, nil, StartBuiltin, StartBuiltin, ""},
		{"a missing script of no framework", "none", "", "", missing, nil, StartBuiltin, "commandScript", ""},
		{"a missing script, chosen", "tensorflow", StartScript, "", missing, nil, StartScript, "commandScript", ""},
		{"a script, not chosen", "tensorflow", StartBuiltin, "", script, nil, StartBuiltin, StartBuiltin, ""},
		{"commands", "tensorflow", "", "", nil, shell, StartScript, "commands", "sleep 1"},
		{"commands, not chosen", "tensorflow", StartBuiltin, "", nil, shell, StartBuiltin, StartBuiltin, ""},
		{"a Python command", "none", "", "", nil, []Command{{Name: "START", Exec: "scripts/x.py", Type: "PYTHON"}}, StartScript, "commands", ""},
		{"commands without START", "none", "", "", nil, []Command{{Name: "STATUS", Exec: "true", Type: "SHELL"}}, StartBuiltin, "", ""},
		{"muster.command", "tensorflow", "", "x", script, shell, StartScript, "muster.command", "x"},
		{"nothing", "tensorflow", "", "", nil, nil, StartBuiltin, "", ""},
		{"nothing, chosen", "tensorflow", StartBuiltin, "", nil, nil, StartBuiltin, StartBuiltin, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := twoRoles()
			a.Components[0].CommandScript, a.Components[0].Commands = test.script, test.commands
			config := section("c", "muster.framework", test.framework, "muster.status.interval", "0")
			own := Section{}
			if test.key != "" {
				own["muster.start"] = at("ps", "muster.start", test.key)
			}
			if test.run != "" {
				own["muster.command"] = at("ps", "muster.command", test.run)
			}
			if found := Settle(&a, Sources{Config: config, ComponentConfig: map[string]Section{"ps": own}}); len(found) > 0 {
				t.Fatal(found)
			}
			s := a.Components[0].Settings
			if s.Start != test.start || s.CommandFrom != test.from || s.Command != test.text || s.StatusInterval != 0 {
				t.Errorf("got %q from %q, %q, STATUS each %v s", s.Start, s.CommandFrom, s.Command, s.StatusInterval)
			}
		})
	}
}

// muster.up=status needs a STATUS that is asked.
func TestUpNeedsStatus(t *testing.T) {
	script := &CommandScript{Script: "scripts/x.py"}
	for name, test := range map[string]struct {
		script   *CommandScript
		commands []Command
		interval string
		want     string // empty: no problem
	}{
		"a script":                 {script, nil, "5", ""}, // which knows itself whether it has one
		"commands with STATUS":     {nil, []Command{{Name: "START", Exec: "true"}, {Name: "STATUS", Exec: "true"}}, "5", ""},
		"commands without":         {nil, []Command{{Name: "START", Exec: "true"}}, "5", `got "status" for ps, which has no STATUS, want a STATUS command`},
		"a STATUS that is no more": {script, nil, "0", `got "status" beside muster.status.interval=0`},
	} {
		a := twoRoles()
		a.Components[0].CommandScript, a.Components[0].Commands = test.script, test.commands
		own := Section{"muster.up": at("ps", "muster.up", "status"), "muster.status.interval": at("ps", "muster.status.interval", test.interval)}
		found := Settle(&a, Sources{Config: section("c", "muster.framework", "none"), ComponentConfig: map[string]Section{"ps": own}})
		found = append(found, Validate(&a)...)
		said := fmt.Sprint(found)
		if strings.Contains(said, "muster.up") != (test.want != "") || !strings.Contains(said, test.want) {
			t.Errorf("%s: got %s, want %q", name, said, test.want)
		}
	}
}
