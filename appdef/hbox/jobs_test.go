package hbox_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// submitted are the words behind hbox-submit in a script, as a shell would read them.
func submitted(t *testing.T, script string) []string {
	t.Helper()
	for text := script; text != ""; {
		words, rest := shellLine(text)
		if i := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, "hbox-submit") }); i >= 0 {
			return words[i+1:]
		}
		text = rest
	}
	t.Fatal("no hbox-submit in the script")
	return nil
}

// shellLine reads one command of a script: words with quotes and backslashes, up to a line's end. It expands nothing.
func shellLine(text string) (words []string, rest string) {
	var w strings.Builder
	begun, quote := false, byte(0)
	end := func() {
		if begun {
			words = append(words, w.String())
		}
		w.Reset()
		begun = false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && strings.HasPrefix(text[i+1:], "\n"):
			i++
		case c == '\\' && quote == 0 && i+1 < len(text):
			i++
			w.WriteByte(text[i])
			begun = true
		case quote != 0:
			w.WriteByte(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == '\n':
			end()
			return words, text[i+1:]
		case c == ' ' || c == '\t':
			end()
		case c == '#' && !begun:
			line := strings.IndexByte(text[i:], '\n')
			if line < 0 {
				end()
				return words, ""
			}
			i += line - 1
		default:
			w.WriteByte(c)
			begun = true
		}
	}
	end()
	return words, ""
}

// Every submit example of HBox's wiki, as it is printed there, and those that its text describes: what is said of it, what
// it means, and what the first instance of each role would do.
func TestJobs(t *testing.T) {
	scripts, err := filepath.Glob("../../tests/jobs/hbox/*.args")
	if err != nil || len(scripts) < 15 {
		t.Fatalf("examples %v: %v", scripts, err)
	}
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".args")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			site := hbox.Site{}
			if name == "docker" { // it counts on the platform's image
				site = siteOf(t, "yarn.nodemanager.docker-container-executor.image-name=registry.example/ai/deeplearning:v2.8")
			}
			s, found := hbox.Parse(submitted(t, string(text)), site)
			said := ""
			for _, p := range found {
				said += p.Severity + ": " + p.String() + "\n"
			}
			if names := s.CarriedNames(); len(names) > 0 {
				said += "carried: " + strings.Join(names, ", ") + "\n"
			}
			dir := filepath.Join("testdata", "jobs", name)
			compare(t, filepath.Join(dir, "said.txt"), []byte(said))
			if len(found.Errors()) > 0 {
				return
			}
			compare(t, filepath.Join(dir, "app.json"), appJSON(t, s.App))
			for _, c := range s.App.Components {
				compare(t, filepath.Join(dir, c.Name+".json"), planJSON(t, s.App, c.Name))
			}
		})
	}
}

func appJSON(t *testing.T, app appdef.App) []byte {
	t.Helper()
	text, err := json.MarshalIndent(struct {
		Counts map[string]int `json:"counts"`
		App    appdef.App     `json:"app"`
	}{app.Counts(), app}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func planJSON(t *testing.T, app appdef.App, component string) []byte {
	t.Helper()
	req := plan.Request{
		Component: component, Digest: "-",
		Allocation: plan.Allocation{Launcher: "shell", Host: "127.0.0.1", User: "ada", Ports: map[string]int{}, Devices: []string{}},
	}
	p, problems := plan.Build(app, req)
	if bad := problems.Errors(); len(bad) > 0 {
		t.Fatal(bad)
	}
	start, problems := plan.Finish(p, plan.ExampleRoster(app, req), plan.StartFacts{Generation: 1, Attempt: 1}, frameworks.Env)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p.Start = &start
	return p.JSON()
}

func compare(t *testing.T, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(got), "\n"), strings.Split(string(want), "\n")); diff != "" {
		t.Errorf("%s (-got +want):\n%s", golden, diff)
	}
}

// The examples with a slip say which.
func TestSlipsOfTheExamples(t *testing.T) {
	for name, want := range map[string]string{
		"tensorflow-distributed-as-printed": "a backslash continues the line only where nothing stands behind it",
		"tensorflow-single":                 "does the last line of the options end in a backslash?",
		"docker":                            `"docker" without an image`,
		"xflow":                             `got "xfow", want XFLOW`,
	} {
		text, err := os.ReadFile(fmt.Sprintf("../../tests/jobs/hbox/%s.args", name))
		if err != nil {
			t.Fatal(err)
		}
		_, found := hbox.Parse(submitted(t, string(text)), hbox.Site{})
		if !strings.Contains(found.Error(), want) {
			t.Errorf("%s: said %q, want %q", name, found.Error(), want)
		}
	}
}
