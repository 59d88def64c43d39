package hbox_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// A shell gives the program exactly the words of the command line, and no part of muster fills anything into them.
func TestWordsReachTheProgram(t *testing.T) {
	words := []string{
		"a b", "", "it's", `"x"`, "$HOME", "${USER}", "${worker_HOST}", "{{checkpoint}}", "{{{port.side.x}}}", "{$conf:@//site/global/x}", "${@//site/global/x}",
		"$(id)", "`id`", "*", "~", "a;b&c|d>e", "\\", "\n", "\t", "!", "#x", "x=1", "日本", "--", "-n",
	}
	line := append([]string{"printf", "%s\\0"}, words...)
	s, found := hbox.Parse(line, hbox.Site{})
	if len(found) > 0 {
		t.Fatal(found)
	}
	p, problems := plan.Build(s.App, plan.Request{Component: "worker", Digest: "-", AppID: "x"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	start, problems := plan.Finish(p, plan.ExampleRoster(s.App, plan.Request{Component: "worker"}), plan.StartFacts{}, nothing)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	cmd := exec.Command(start.Argv[0], start.Argv[1:]...)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Errorf("the program got %q, want %q", got, words)
	}
}

func nothing(plan.Plan, registry.Roster) (env, files map[string]string) { return nil, nil }

// A first word that a shell would take for its own is a program all the same.
func TestFirstWord(t *testing.T) {
	for _, word := range []string{"if", "x=1", "time", "!"} {
		s, found := hbox.Parse([]string{word, "a"}, hbox.Site{})
		if len(found) > 0 {
			t.Fatal(found)
		}
		cmd := exec.Command("bash", "-c", s.App.Component("worker").Settings.Command)
		out, _ := cmd.CombinedOutput() // it fails, and says how
		if cmd.ProcessState.ExitCode() != 127 || !strings.Contains(string(out), word) {
			t.Errorf("%s: %d, %s; want a program that is not found", word, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// Any App gives a command line that can be read; what it cannot say is told.
func TestWriteOfAnother(t *testing.T) {
	d := appdef.NewDraft("slider", "job", appdef.Place{File: "f"})
	d.Add("worker", 2, appdef.Place{})
	d.Set("worker", "muster.command", "python a.py $HOME | tee log", appdef.Place{})
	d.Set("worker", "site.global.x", "1", appdef.Place{})
	d.Set("worker", "muster.resume.args", "--from {{checkpoint}}", appdef.Place{})
	d.Add("web", 1, appdef.Place{})
	d.Set("web", "muster.command", "serve", appdef.Place{})
	d.App.Release = "2"
	app, found := d.Finish()
	if len(found.Errors()) > 0 {
		t.Fatal(found)
	}
	args, unsupported := hbox.Write(app)
	want := []string{"the component web: HBox has workers, parameter servers and an evaluator", "the value of site.global.x of worker", "the version"}
	if !slices.Equal(unsupported, want) {
		t.Errorf("unsupported %q, want %q", unsupported, want)
	}
	s, found := hbox.Parse(args, hbox.Site{})
	if len(found.Errors()) > 0 {
		t.Fatalf("%q: %v", args, found)
	}
	c := s.App.Component("worker")
	if c.Settings.Command != "python a.py $HOME | tee log" || c.Settings.ResumeArgs != "--from {{checkpoint}}" || c.Instances != 2 || c.Limits.MemoryMB != 256 {
		t.Errorf("%q gives %+v", args, c)
	}
	if m := c.Settings.Complete.MinFailed; m == nil || *m != 1 || s.App.Settings.Total.FailedShare != 0 {
		t.Errorf("%q: the rule of failures is another: %v, %v", args, m, s.App.Settings.Total)
	}
	if got := args[len(args)-3:]; !slices.Equal(got, []string{"bash", "-c", "python a.py $HOME | tee log"}) {
		t.Errorf("HBox itself would run %q", got)
	}
}
