package plan_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/plan"
)

// hboxApp is a distributed TensorFlow job whose worker 1 of three leaves its outputs.
func hboxApp() appdef.App {
	only := 0
	return appdef.App{
		Name: "job", Dialect: "hbox",
		Settings: appdef.AppSettings{Framework: "tensorflow", HBox: appdef.HBox{Type: "TENSORFLOW"}},
		Components: []appdef.Component{
			{Name: "ps", Instances: 2, Priority: 1, Limits: appdef.Limits{MemoryMB: 512, VCores: 2}, Settings: appdef.ComponentSettings{Role: appdef.RolePS, Command: "true"}},
			{Name: "chiefworker", Instances: 1, Priority: 2, Limits: appdef.Limits{MemoryMB: 512, VCores: 1, GPUs: 2}, Settings: appdef.ComponentSettings{
				Role: appdef.RoleChief, Command: "true", Inputs: appdef.Inputs{From: map[string]string{"data": "/d", "a": "/a"}},
			}},
			{Name: "worker", Instances: 2, Priority: 3, Limits: appdef.Limits{MemoryMB: 512, VCores: 1, GPUs: 1}, Settings: appdef.ComponentSettings{
				Role: appdef.RoleWorker, Command: "true", Outputs: appdef.Outputs{To: map[string]string{"model": "/m"}, Only: &only},
			}},
		},
	}
}

func TestHBoxFacts(t *testing.T) {
	p, problems := plan.Build(hboxApp(), plan.Request{Component: "ps", Digest: "-"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := &plan.HBox{Type: "TENSORFLOW", GPUs: 2, Output: "1", Input: "a,data", PSCPUs: 2, PSMemory: 512}
	if diff := cmp.Diff(want, p.HBox); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	single := hboxApp()
	single.Settings.Framework = "none"
	if p, _ := plan.Build(single, plan.Request{Component: "ps", Digest: "-"}); !p.HBox.Single {
		t.Error("a job without a framework is not single")
	}
	other := hboxApp()
	other.Settings.HBox.Type = ""
	if p, _ := plan.Build(other, plan.Request{Component: "ps", Digest: "-"}); p.HBox != nil {
		t.Errorf("facts of another dialect: %v", p.HBox)
	}
}

// muster.env.inherit=hbox lets through what HBox's container would set, and what --env says.
func TestInheritHBox(t *testing.T) {
	app := hboxApp()
	req := plan.Request{
		Component: "worker", Digest: "-",
		HostFacts: plan.HostFacts{
			Given:     map[string]string{"TOKEN": "x"},
			Inherited: map[string]string{"PATH": "/bin", "LANG": "C", "PYTHONPATH": "/p", "JAVA_HOME": "/j", "CLASSPATH": "/c"},
		},
	}
	for inherit, want := range map[string][]string{"": {"CLASSPATH", "JAVA_HOME", "LANG", "PATH", "PYTHONPATH", "TOKEN"}, appdef.InheritHBox: {"CLASSPATH", "JAVA_HOME", "PATH", "TOKEN"}} {
		app.Settings.InheritEnv = inherit
		p, problems := plan.Build(app, req)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := slices.Sorted(maps.Keys(p.Process.Inherited)); !slices.Equal(got, want) {
			t.Errorf("inherit %q: %v, want %v", inherit, got, want)
		}
	}
}

// What a submission brings lies in the working directory, under its own name; a package's own files have places of theirs.
func TestHBoxFiles(t *testing.T) {
	app := hboxApp()
	app.AppResources = []string{"package/files/train.py"}
	app.Packages = []appdef.Package{{Type: "folder", Name: "files/tensorflow"}}
	for kind, want := range map[string][]string{
		"TENSORFLOW": {"${WORK}/ps-0/train.py", "${WORK}/ps-0/tensorflow"},
		"":           {"${WORK}/ps-0/app/resources/train.py", "${WORK}/ps-0/app/install"},
	} {
		app.Settings.HBox.Type = kind
		p, problems := plan.Build(app, plan.Request{Component: "ps", Digest: "-"})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		var got []string
		for _, item := range p.Stage[1:] {
			got = append(got, item.To)
		}
		if !slices.Equal(got, want) {
			t.Errorf("type %q: %v, want %v", kind, got, want)
		}
	}
}
