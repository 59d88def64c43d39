package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
)

// reading has the trainers read and leave something.
func reading(change func(*appdef.ComponentSettings)) appdef.App {
	return with(trainingApp(), "worker", func(c *appdef.Component) {
		c.Settings.Inputs = appdef.Inputs{From: map[string]string{"data": "/in/{a,b}.txt, more ,,file:/x", "labels": "${NN_URI}/labels"}}
		c.Settings.Outputs = appdef.Outputs{To: map[string]string{"model": "out"}}
		change(&c.Settings)
	})
}

func TestInputsAndOutputs(t *testing.T) {
	req := request("worker", 1)
	req.DefaultFS = DefaultStore
	p := mustBuild(t, reading(func(*appdef.ComponentSettings) {}), req)
	wantIn := &Inputs{
		Strategy: "download", Worker: 1, Workers: 3,
		From: []Input{
			{"data", []string{"/in/{a,b}.txt", "file:${WORK}/store/more", "file:/x"}},
			{"labels", []string{"file:${WORK}/store/labels"}},
		},
	}
	wantOut := &Outputs{Strategy: "upload", To: []Output{{"model", "file:${WORK}/store/out"}}, Folder: "worker-1"}
	if diff := cmp.Diff(wantIn, p.Inputs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(wantOut, p.Outputs); diff != "" {
		t.Error(diff)
	}
	if p.DefaultFS != DefaultStore {
		t.Errorf("default filesystem %q, want %q", p.DefaultFS, DefaultStore)
	}
	r := Resolve(p, Dirs{Work: "/w", Log: "/l"})
	if r.Inputs.From[1].From[0] != "file:/w/store/labels" || r.Outputs.To[0].To != "file:/w/store/out" || r.DefaultFS != "file:/w/store" {
		t.Errorf("resolved: %+v, %+v, %s", r.Inputs, r.Outputs, r.DefaultFS)
	}
	if p.Inputs.From[1].From[0] != "file:${WORK}/store/labels" || p.Outputs.To[0].To != wantOut.To[0].To {
		t.Error("Resolve changed its argument")
	}
	ps := mustBuild(t, reading(func(*appdef.ComponentSettings) {}), request("ps", 0))
	if ps.Inputs != nil || ps.Outputs != nil || ps.DefaultFS != "" {
		t.Errorf("a component without data: %+v, %+v, %q", ps.Inputs, ps.Outputs, ps.DefaultFS)
	}
}

// Trainers read first, then parameter servers with the same inputs; evaluators and others have none of it.
func TestReaders(t *testing.T) {
	app := reading(func(*appdef.ComponentSettings) {})
	same := app.Component("worker").Settings.Inputs
	app = with(app, "ps", func(c *appdef.Component) { c.Settings.Inputs = same })
	app.Components = append(app.Components, app.Components[1], app.Components[1])
	app.Components[3].CompExports, app.Components[4].CompExports = nil, nil // the worker's
	app.Components[3].Name, app.Components[3].Settings.Role = "evaluator", appdef.RoleEvaluator
	app.Components[4].Name, app.Components[4].Instances = "other", 1
	app.Components[4].Settings.Inputs.From = map[string]string{"data": "/elsewhere"}
	names := func(component string) string {
		var all []string
		for _, in := range Readers(&app, component) {
			all = append(all, in.String())
		}
		return strings.Join(all, " ")
	}
	const want = "worker-0 worker-1 worker-2 ps-0 ps-1"
	for component, want := range map[string]string{"worker": want, "ps": want, "other": "other-0", "tensorboard": "", "none": ""} {
		if got := names(component); got != want {
			t.Errorf("%s: got %q, want %q", component, got, want)
		}
	}
	p := mustBuild(t, app, withStore(request("ps", 1)))
	if p.Inputs.Worker != 4 || p.Inputs.Workers != 5 {
		t.Errorf("ps-1 is reader %d of %d, want 4 of 5", p.Inputs.Worker, p.Inputs.Workers)
	}
	if p := mustBuild(t, app, withStore(request("evaluator", 0))); p.Inputs != nil {
		t.Errorf("the evaluator reads %+v", p.Inputs)
	}
}

func withStore(r Request) Request {
	r.DefaultFS = DefaultStore
	return r
}

// Interim saves are planned for, and the conductor is told who has something to save, and how often.
func TestSaves(t *testing.T) {
	app := reading(func(s *appdef.ComponentSettings) { s.Outputs.Interim, s.Outputs.Incremental = "saves/save_", true })
	app.Settings.SaveEvery = 90
	p := mustBuild(t, app, withStore(request("worker", 1)))
	if o := p.Outputs; o.Interim != "saves/save_" || !o.Incremental || o.SaveEvery != 90 {
		t.Errorf("got %+v", o)
	}
	for every, want := range map[appdef.Seconds]time.Duration{0: 0, 0.2: time.Second, 90: 90 * time.Second} {
		app.Settings.SaveEvery = every
		if got := Gang(app, request("worker", 0)).SaveEvery; got != want {
			t.Errorf("every %g s: got %s, want %s", every, got, want)
		}
	}
	saves := func(app appdef.App) (names []string) {
		for _, c := range Gang(app, request("worker", 0)).Components {
			if c.Saves {
				names = append(names, c.Name)
			}
		}
		return names
	}
	if got := saves(app); !slices.Equal(got, []string{"worker"}) {
		t.Errorf("got %v, want the workers alone", got)
	}
	if got := saves(reading(func(s *appdef.ComponentSettings) { s.Outputs.Strategy = appdef.StrategyStream })); len(got) > 0 {
		t.Errorf("of a stream: got %v, want none", got)
	}
	one := 1
	_, bad := Build(reading(func(s *appdef.ComponentSettings) {
		s.Outputs = appdef.Outputs{To: map[string]string{"_SUCCESS": "out"}, Only: &one}
	}), withStore(request("worker", 1)))
	if len(bad.Errors()) != 1 || !strings.Contains(bad.Error(), "Hadoop's own") {
		t.Errorf("an output that is called _SUCCESS: got %v", bad)
	}
}

// Two components must not leave one name at one place: the second would take the place of the first.
func TestOutputsOfTwoComponents(t *testing.T) {
	one := 1
	for _, tt := range []struct {
		name string
		ps   appdef.Outputs
		bad  bool
	}{
		{"the same name", appdef.Outputs{To: map[string]string{"model": "out/"}, Only: new(int)}, true},
		{"flat", appdef.Outputs{To: map[string]string{"model": "out"}, Flat: true}, true},
		{"another name", appdef.Outputs{To: map[string]string{"state": "out"}, Only: new(int)}, false},
		{"another place", appdef.Outputs{To: map[string]string{"model": "out2"}, Only: new(int)}, false},
		{"below its instances' names", appdef.Outputs{To: map[string]string{"model": "out"}}, false},
	} {
		app := reading(func(s *appdef.ComponentSettings) { s.Outputs.Only = &one })
		app = with(app, "ps", func(c *appdef.Component) { c.Instances, c.Settings.Outputs = 1, tt.ps })
		_, found := Build(app, withStore(request("worker", 1)))
		if bad := found.Errors(); (len(bad) > 0) != tt.bad || tt.bad && !strings.Contains(bad.Error(), "where ps leaves its own as well") {
			t.Errorf("%s: got %v", tt.name, bad)
		}
	}
}

func TestWhereOutputsGo(t *testing.T) {
	one, two := 1, 2
	for _, tt := range []struct {
		name   string
		app    appdef.App
		index  int
		folder string
		to     string
	}{
		{"each its own", reading(func(*appdef.ComponentSettings) {}), 2, "worker-2", "file:${WORK}/store/out"},
		{"the only one", reading(func(s *appdef.ComponentSettings) { s.Outputs.Only = &one }), 1, "", "file:${WORK}/store/out"},
		{"not the only one", reading(func(s *appdef.ComponentSettings) { s.Outputs.Only = &two }), 1, "", ""},
		{"flat, of several", reading(func(s *appdef.ComponentSettings) { s.Outputs.Flat = true }), 0, "worker-0", "file:${WORK}/store/out"},
		{"flat, of one", with(reading(func(s *appdef.ComponentSettings) { s.Outputs.Flat = true }), "worker", func(c *appdef.Component) { c.Instances = 1 }), 0, "", "file:${WORK}/store/out"},
		{"a server of MXNet's", func() appdef.App {
			app := reading(func(s *appdef.ComponentSettings) { s.Role = appdef.RolePS })
			app.Settings.HBox.Type = "MXNET"
			return app
		}(), 0, "worker-0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustBuild(t, tt.app, withStore(request("worker", tt.index)))
			if p.Outputs.Folder != tt.folder || p.Outputs.To[0] != (Output{"model", tt.to}) {
				t.Errorf("got %+v, want folder %q, to %q", p.Outputs, tt.folder, tt.to)
			}
		})
	}
}

func TestLocations(t *testing.T) {
	for _, tt := range []struct{ fs, written, want string }{
		{"", "/a/b", "/a/b"},
		{"file:/data", "/a/b", "file:/data/a/b"},
		{"file:/data", "file:/a/b", "file:/a/b"},
		{"file:/data", "a/b", "file:/data/a/b"},
		{"file:///data", "a/b", "file:/data/a/b"},
		{"file:/data", "${NN_URI}/a", "file:/data/a"},
		{"hdfs://nn:9000", "/a/b", "hdfs://nn:9000/a/b"},
		{"hdfs://nn:9000/", "/a/b", "hdfs://nn:9000/a/b"},
		{"hdfs://nn:9000", "a/b", "hdfs://nn:9000/user/ada/a/b"},
		{"hdfs://nn:9000", "file:/a", "file:/a"},
		{"file:/data", "hdfs://other/a*", "hdfs://other/a*"},
		{"", "a/b", ""}, // nobody knows where
		{"file:/", "a/b", ""},
		{"file:/data", "file:a/b", ""},
		{"file:/data", "a/../../b", ""}, // it would leave the filesystem
		{"file:/data", "a/../b", "file:/data/b"},
	} {
		app := reading(func(s *appdef.ComponentSettings) { s.Inputs.From = map[string]string{"data": tt.written} })
		req := request("worker", 0)
		req.DefaultFS = tt.fs
		if tt.want == "" || tt.fs == "" { // then the output has no place either
			app = with(app, "worker", func(c *appdef.Component) { c.Settings.Outputs.To = nil })
		}
		p, problems := Build(app, req)
		if tt.want == "" {
			if len(problems.Errors()) != 1 || !strings.Contains(problems.Errors()[0].Want, "a path from / on") {
				t.Errorf("%s in %s: got %v, want a problem", tt.written, tt.fs, problems)
			}
			continue
		}
		if len(problems.Errors()) > 0 || p.Inputs.From[0].From[0] != tt.want {
			t.Errorf("%s in %s: got %+v, %v, want %s", tt.written, tt.fs, p.Inputs, problems, tt.want)
		}
	}
}

// The definition's own word on the default filesystem wins over the caller's.
func TestDefaultFSOfTheDefinition(t *testing.T) {
	app := with(reading(func(*appdef.ComponentSettings) {}), "worker", func(c *appdef.Component) {
		c.Config = map[string]string{"site.fs.defaultFS": "hdfs://own:1/", "site.global.worker.port": "${worker.ALLOCATED_PORT}"}
		c.Settings.Command = "echo ${NN_URI} ${NN_HOST}"
	})
	for _, test := range []struct {
		name        string
		environment map[string]string
		given       map[string]string
		want        string
	}{
		{name: "the definition", want: "echo hdfs://own:1/ own"},
		{
			name:        "the environment is of another store",
			environment: map[string]string{"NN_URI": "hdfs://env:2", "NN_HOST": "env"}, want: "echo hdfs://own:1/ own",
		},
		{
			name:        "the environment knows a host of the same store",
			environment: map[string]string{"NN_URI": "hdfs://own:1/", "NN_HOST": "own.example"},
			want:        "echo hdfs://own:1/ own.example",
		},
		{
			name:  "the command line",
			given: map[string]string{"NN_URI": "hdfs://set:2"}, want: "echo hdfs://set:2 set",
		},
		{
			name:  "the command line knows the host",
			given: map[string]string{"NN_HOST": "set"}, want: "echo hdfs://own:1/ set",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			req, app := withStore(request("worker", 0)), app
			req.Allocation.Vars, app.Vars = test.environment, test.given
			if p := mustBuild(t, app, req); p.Process.Argv[2] != test.want {
				t.Errorf("got %q, want %q", p.Process.Argv[2], test.want)
			}
		})
	}
	app = with(app, "worker", func(c *appdef.Component) { c.Config = map[string]string{}; c.CompExports = nil })
	req := request("worker", 0)
	req.DefaultFS, req.Origins = "hdfs://nn:9000", map[string]string{"default_fs": "--default-fs"}
	p, problems := Build(app, req)
	if len(problems.Errors()) > 0 || p.Process.Argv[2] != "echo hdfs://nn:9000 nn" || p.Origins["/default_fs"] != "--default-fs" {
		t.Errorf("got %v, %q, from %q", problems, p.Process.Argv, p.Origins["/default_fs"])
	}
}

// What cannot be run is planned with a warning, and refused where it is to start.
func TestDataThatCannotBeRun(t *testing.T) {
	for _, tt := range []struct {
		change func(*appdef.ComponentSettings)
		got    string
	}{
		{func(s *appdef.ComponentSettings) { s.Inputs.From["data"] = "/a,s3://b/c" }, `s3: in "s3://b/c"`},
		{func(s *appdef.ComponentSettings) { s.Outputs.To["model"] = "s3://nn/x" }, `s3: in "s3://nn/x"`},
	} {
		says := func(all []appdef.Problem) bool {
			return slices.ContainsFunc(all, func(p appdef.Problem) bool { return p.Got == tt.got })
		}
		req := withStore(request("worker", 0))
		if p, problems := Build(reading(tt.change), req); len(problems) > 0 || !says(p.Warnings) {
			t.Errorf("%s: planned with %v, %v, want one warning", tt.got, problems, p.Warnings)
		}
		req.Starts = true
		if _, problems := Build(reading(tt.change), req); len(problems) != 1 || !says(problems) {
			t.Errorf("%s: to be run with %v, want one problem", tt.got, problems)
		}
	}
	_, problems := Build(reading(func(s *appdef.ComponentSettings) { s.Outputs.To["other"] = "out" }), withStore(request("worker", 0)))
	if len(problems) != 1 || !strings.Contains(problems[0].Got, "muster.output.model goes as well") {
		t.Errorf("two outputs in one place: %v", problems)
	}
	_, problems = Build(reading(func(s *appdef.ComponentSettings) {
		s.Inputs.Strategy, s.Processes = appdef.StrategyStream, 2
	}), withStore(request("worker", 0)))
	if !slices.ContainsFunc(problems, func(p appdef.Problem) bool {
		return p.Got == "2 processes in a container with the input strategy stream" && p.Severity == appdef.SeverityError
	}) {
		t.Errorf("two processes for one stdin: %v", problems)
	}
}

func TestCodeAndOutputDir(t *testing.T) {
	for _, tt := range []struct {
		name, version, command, dir string
		want                        []StageItem
	}{
		{"0.5", appdef.PAI05, "true", "/src/tf/", []StageItem{{Name: "codeDir", Kind: StageCode, From: "/src/tf/", To: "${WORK}/worker-0/tf"}}},
		{"0.14", appdef.PAI014, "true", "/src/tf", []StageItem{{Name: "codeDir", Kind: StageCode, From: "/src/tf", To: "${WORK}/worker-0/tf"}}},
		{"1", appdef.PAI1, "echo $PAI_OUTPUT_DIR", "", []StageItem{{Name: "outputDir", Kind: StageOutput, From: "file:${WORK}/store/Output/j"}}},
		{"by its path", appdef.PAI1, "echo ${NN_URI}/Output/j", "", []StageItem{{Name: "outputDir", Kind: StageOutput, From: "file:${WORK}/store/Output/j"}}},
	} {
		app := with(trainingApp(), "worker", func(c *appdef.Component) { c.Settings.Command = tt.command })
		app.Settings.PAI = appdef.PAI{Version: tt.version, CodeDir: tt.dir, OutputDir: "${NN_URI}/Output/j"}
		p := mustBuild(t, app, withStore(request("worker", 0)))
		got := slices.DeleteFunc(slices.Clone(p.Stage), func(i StageItem) bool { return !strings.HasSuffix(i.Name, "Dir") })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	app := with(trainingApp(), "worker", func(c *appdef.Component) { c.Settings.Command = "true" })
	app.Settings.PAI = appdef.PAI{Version: appdef.PAI05, CodeDir: "/src/app"}
	if _, problems := Build(app, request("worker", 0)); len(problems.Errors()) != 1 || !strings.Contains(problems[0].Hint, "muster's") {
		t.Errorf("codeDir of muster's own name: %v", problems)
	}
}
