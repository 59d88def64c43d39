package plan_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// load reads an app package as the command line does; warnings are allowed, errors are not.
func load(t testing.TB, files fs.FS) appdef.App {
	t.Helper()
	app, problems := slider.Load(files, slider.Options{})
	if bad := problems.Errors(); len(bad) > 0 {
		t.Fatal(bad)
	}
	return app
}

// packages are all app packages of the catalog and both spellings of Slider's TensorFlow package.
func packages(t testing.TB) map[string]fs.FS {
	t.Helper()
	all := map[string]fs.FS{}
	for _, name := range catalog.Names() {
		files, err := catalog.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		all["catalog-"+name] = files
	}
	for _, name := range []string{"tensorflow-seed", "tensorflow-published"} {
		all[name] = os.DirFS(filepath.Join("../../tests/packages", name))
	}
	return all
}

// goldenRequest is an allocation that is the same everywhere.
func goldenRequest(component string, index int) plan.Request {
	return plan.Request{
		Component: component, Index: index, Digest: "-",
		Allocation: plan.Allocation{
			Launcher: "shell", Host: "127.0.0.1", User: "ada", Ports: map[string]int{}, Devices: []string{},
		},
		Engine: plan.EngineChoice{
			Name: "process", Why: "the only engine that needs nothing of the host",
			Cannot: map[string]string{"vcores": "without a cgroup there is no share", "pids": "counted by nobody"},
		},
	}
}

// Each golden is what `muster plan --component C --index I --roster example` prints.
func TestGoldenPlans(t *testing.T) {
	for name, files := range packages(t) {
		app := load(t, files)
		for _, c := range app.Components {
			for index := range min(c.Instances, 2) {
				t.Run(fmt.Sprintf("%s/%s-%d", name, c.Name, index), func(t *testing.T) {
					req := goldenRequest(c.Name, index)
					p, problems := plan.Build(app, req)
					if len(problems) > 0 {
						t.Fatal(problems)
					}
					roster := plan.ExampleRoster(app, req)
					start, problems := plan.Finish(p, roster, plan.StartFacts{Generation: 1, Attempt: 1}, frameworks.Env)
					if len(problems) > 0 {
						t.Fatal(problems)
					}
					p.Start = &start
					compare(t, filepath.Join("testdata", name, fmt.Sprintf("%s-%d.json", c.Name, index)), p.JSON())
				})
			}
		}
	}
}

// In-graph the first worker, or the chief where there is one, runs the script and its success is the
// job's; all others run the packaged server.
func TestGoldenInGraph(t *testing.T) {
	files, err := catalog.Open("tensorflow")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		set    []string
		leader string
	}{
		{"in-graph", nil, "worker-0"},
		{"in-graph-command", []string{"worker:muster.command=./train --fast", "worker:muster.resume.args=--resume {{checkpoint}}"}, "worker-0"},
		{"in-graph-chief", []string{"ps:muster.role=chief", "ps:yarn.component.instances=1"}, "ps-0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			app, problems := slider.Load(files, slider.Options{Set: append([]string{"global:muster.tensorflow.mode=in-graph"}, tt.set...)})
			if bad := problems.Errors(); len(bad) > 0 {
				t.Fatal(bad)
			}
			for _, instance := range plan.Instances(&app) {
				req := goldenRequest(instance.Component, instance.Index)
				p, problems := plan.Build(app, req)
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				start, problems := plan.Finish(p, plan.ExampleRoster(app, req), plan.StartFacts{Generation: 1, Attempt: 1, Checkpoint: "ckpt/7"}, frameworks.Env)
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				p.Start = &start
				serves := len(start.Argv) == 3 && strings.Contains(start.Argv[2], "server.join()")
				if want := instance.String() != tt.leader && p.Who.Role != "service"; serves != want {
					t.Errorf("%s serves: %t, want %t: %q", instance, serves, want, start.Argv)
				}
				if leads := p.Complete.MinSucceeded != nil && *p.Complete.MinSucceeded == 1; instance.String() == tt.leader && !leads {
					t.Errorf("%s completes the job: %v", instance, p.Complete)
				}
				if instance.Index < 2 {
					compare(t, filepath.Join("testdata", tt.name, instance.String()+".json"), p.JSON())
				}
			}
		})
	}
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

// absolute finds a path from the root in a text: at its start or after a blank, a quote, `=` or `:`.
var absolute = regexp.MustCompile(`(?:^|[\s"'=:,;(])(/[A-Za-z0-9._][^\s"']*)`)

// A plan is the same on every host: nothing in it names a place of the host's.
func TestGoldensNameNoPlaceOfTheHost(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("goldens: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tree map[string]any
		if err := json.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		delete(tree, "origins")                                           // its keys are pointers into this document
		delete(tree, "warnings")                                          // theirs point into the definition
		forget(tree, "script", "configurations", "global", "hadoop.conf") // a place that the definition itself names
		walk(tree, func(s string) {
			if m := absolute.FindStringSubmatch(s); m != nil {
				t.Errorf("%s: absolute path %s in %q", file, m[1], s)
			}
		})
	}
	if absolute.FindString("--x=/etc/y") == "" || absolute.FindString("hdfs://nn/x ${WORK}/y app/z") != "" {
		t.Error("the pattern finds no absolute path, or too many")
	}
}

// forget takes what lies at the end of a path out of the tree.
func forget(tree map[string]any, path ...string) {
	for _, name := range path[:len(path)-1] {
		tree, _ = tree[name].(map[string]any)
	}
	delete(tree, path[len(path)-1])
}

// walk calls f with every string of the tree.
func walk(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			walk(e, f)
		}
	case map[string]any:
		for _, e := range v {
			walk(e, f)
		}
	}
}

// What both spellings of the TensorFlow package have in common: who is there, and who leads.
func TestBothSpellingsOfTheTensorFlowPackage(t *testing.T) {
	for name, want := range map[string]string{
		"tensorflow-seed":      "ps:2 worker:5",
		"tensorflow-published": "ps:2 chief:1 worker:5",
	} {
		app := load(t, packages(t)[name])
		var got []string
		for _, c := range plan.Gang(app, plan.Request{}).Components {
			if c.Waited {
				got = append(got, fmt.Sprintf("%s:%d", c.Role, c.Count))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: gang %v, want %s", name, got, want)
		}
	}
}

func ExampleBuild() {
	files, err := catalog.Open("handwriting")
	if err != nil {
		fmt.Println(err)
		return
	}
	app, _ := slider.Load(files, slider.Options{Instances: []string{"ps=1,worker=3"}})
	p, problems := plan.Build(app, plan.Request{AppID: "d1", Component: "worker", Index: 1})
	fmt.Println(len(problems), p.Who.Rank, p.Barrier.WaitsFor, p.Ports[0].Name, p.Stage[0].To)
	// Output: 0 2 [ps=1 worker=3] global.worker.port ${WORK}/worker-1/app/definition
}
