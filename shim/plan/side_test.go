package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// besides is what side processes make of the plan of one instance.
type besides struct {
	Instance string            `json:"instance"`
	Ports    []string          `json:"ports,omitempty"` // name and number asked for
	Exports  map[string]string `json:"exports,omitempty"`
	Variable map[string]string `json:"variables,omitempty"` // MUSTER_PORT*
	Sides    []plan.Side       `json:"sides,omitempty"`
	Started  []started         `json:"started,omitempty"` // with the example's roster
	Problems []string          `json:"problems,omitempty"`
}

type started struct {
	Argv []string          `json:"argv"`
	Env  map[string]string `json:"env"` // over that of the process
}

// Each file of testdata/sides is a definition; `want` is what its side processes make of its plans.
func TestSides(t *testing.T) {
	paths, err := filepath.Glob("testdata/sides/*.txtar")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d cases, %v; want at least 5", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(sidesOf(t, archive), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			text := string(got) + "\n"
			at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			if at < 0 {
				at = len(archive.Files)
				archive.Files = append(archive.Files, txtar.File{Name: "want"})
			}
			if *update {
				archive.Files[at].Data = []byte(text)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(string(archive.Files[at].Data), "\n")); diff != "" {
				t.Errorf("got -, want + (-update writes the file anew):\n%s", diff)
			}
		})
	}
}

func sidesOf(t *testing.T, archive *txtar.Archive) []besides {
	t.Helper()
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	app, problems := slider.Load(files, slider.Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var all []besides
	for _, in := range plan.Instances(&app) {
		request := goldenRequest(in.Component, in.Index)
		request.Engine.Cannot = nil
		p, problems := plan.Build(app, request)
		roster := plan.ExampleRoster(app, request)
		one := besides{Instance: in.String(), Exports: map[string]string{}, Variable: map[string]string{}, Sides: p.Sides}
		for _, problem := range append(problems, p.Warnings...) {
			one.Problems = append(one.Problems, problem.String())
		}
		for _, port := range p.Ports {
			one.Ports = append(one.Ports, fmt.Sprintf("%s %d", port.Name, port.Want))
		}
		if len(problems) > 0 {
			all = append(all, one)
			continue
		}
		for i := range roster.Rows {
			if roster.Rows[i].Instance == in {
				one.Exports = roster.Rows[i].Exports
			}
		}
		start, problems := plan.Finish(p, roster, plan.StartFacts{Attempt: 1, Generation: 1}, noEnv)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for name, value := range start.Env {
			if strings.HasPrefix(name, "MUSTER_PORT") {
				one.Variable[name] = value
			}
		}
		for _, s := range p.Sides {
			argv, env := plan.FinishSide(p, s, roster, plan.StartFacts{Attempt: 1, Generation: 1}, start, sideEnv)
			for name, value := range start.Env {
				if env[name] == value {
					delete(env, name)
				}
			}
			one.Started = append(one.Started, started{argv, env})
		}
		all = append(all, one)
	}
	return all
}

func noEnv(plan.Plan, registry.Roster) (env, files map[string]string) { return nil, nil }

// sideEnv stands for the framework's word.
func sideEnv(_ plan.Plan, r registry.Roster, side string) map[string]string {
	return map[string]string{"ROWS_FOR_" + strings.ToUpper(side): strings.Repeat("I", len(r.Rows))}
}

// The agent's folders are filled in, but where a shell means variables of its own; an image's own words stay.
func TestSidesAreResolved(t *testing.T) {
	p := plan.Resolve(plan.Plan{Sides: []plan.Side{{
		Argv: []string{"/entry${WORK}", "${WORK}/x", "echo ${WORK-} ${LOG}"}, Verbatim: 1, Env: map[string]string{"A": "${LOG}/a"},
	}}}, plan.Dirs{Work: "/w", Log: "/l"})
	want := plan.Side{Argv: []string{"/entry${WORK}", "/w/x", "echo ${WORK-} /l"}, Verbatim: 1, Env: map[string]string{"A": "/l/a"}}
	if diff := cmp.Diff(p.Sides[0], want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}
