package script

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/plan"
)

var update = flag.Bool("update", false, "rewrite golden files")

// memcached is a plan as Slider's memcached package makes it, resolved.
func memcached() plan.Plan {
	return plan.Plan{
		App: plan.AppPart{ID: "mem1", Name: "MEMCACHED"}, Who: plan.Who{Component: "MEMCACHED", Index: 1},
		Process: plan.Process{Folder: "/w/MEMCACHED-1"},
		Script: &plan.Script{
			File: "scripts/memcached.py", Python: "python3", Folder: "/w/MEMCACHED-1/app/definition/package",
			Library: "/w/MEMCACHED-1/infra/agent/slider-agent", Timeout: 600, StatusInterval: 5, JavaHome: "/usr/lib/jvm/17",
			PackageList: `[{"name":"files/jmemcached.tar.gz","type":"tarball"}]`, AutoStart: true,
			Addons: []plan.ScriptAddon{
				{
					Name: "stats", Root: "/w/MEMCACHED-1/addon/definition/application.addon.stats", Timeout: 30,
					ScriptCommand: plan.ScriptCommand{File: "scripts/stats.py"},
				},
				{
					Name: "more", Root: "/w/MEMCACHED-1/addon/definition/application.addon.more", Timeout: 600,
					ScriptCommand: plan.ScriptCommand{Shell: "echo more"},
				},
			},
			Commands: map[string]plan.ScriptCommand{"PING": {Shell: "echo pong"}, "CHECK": {File: "scripts/check.py"}},
			Configurations: map[string]map[string]string{
				"global": {
					"app_container_id": "MEMCACHED-1", "pid_file": "/w/MEMCACHED-1/app/run/component.pid",
					"app_pid_dir": "/w/MEMCACHED-1/app/run", "listen_port": "20007",
				},
				"memcached-site": {"memory_size": "200M"},
			},
		},
	}
}

// TestDocument holds the command JSON of each kind of command against golden files.
func TestDocument(t *testing.T) {
	p := memcached()
	for name, order := range map[string]Order{
		"install": {Command: plan.CommandInstall, Task: 1}, "start": {Command: plan.CommandStart, Task: 2}, "status": {Command: plan.CommandStatus},
		"shell": {Command: "PING", Task: 3}, "python": {Command: "CHECK", Task: 4},
		"addon":       {Command: plan.CommandInstall, Task: 2, Addon: 1},
		"addon-shell": {Command: plan.CommandInstall, Task: 3, Addon: 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := order.Document(p, p.Script, "10.0.0.7")
			golden := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestDocumentHasSlidersKeys: each key that Slider's agent sends (CustomServiceOrchestrator), and no other.
func TestDocumentHasSlidersKeys(t *testing.T) {
	p := memcached()
	var got map[string]any
	if err := json.Unmarshal(Order{Command: plan.CommandStart, Task: 2}.Document(p, p.Script, "h"), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"appmaster_hostname", "clusterName", "commandId", "commandParams", "commandType", "componentConfig", "componentName", "configurations",
		"containers", "hostLevelParams", "hostname", "public_hostname", "role", "roleCommand", "roleParams", "serviceName", "taskId",
		"yarnDockerMode",
	}
	var keys []string
	for k := range got {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if d := cmp.Diff(want, keys); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestArgv(t *testing.T) {
	s := memcached().Script
	for _, c := range []struct {
		order Order
		want  []string
	}{
		{Order{Command: plan.CommandInstall, Task: 1}, []string{
			"python3", "/w/MEMCACHED-1/app/definition/package/scripts/memcached.py", "INSTALL", "/log/command-1.json",
			"/w/MEMCACHED-1/app/definition/package", "/log/structured-out-1.json", "INFO", "/w/MEMCACHED-1",
		}},
		{Order{Command: plan.CommandStatus}, []string{
			"python3", "/w/MEMCACHED-1/app/definition/package/scripts/memcached.py", "STATUS", "/log/status_command.json",
			"/w/MEMCACHED-1/app/definition/package", "/log/structured-out-status.json", "INFO", "/w/MEMCACHED-1",
		}},
		{Order{Command: "CHECK", Task: 4}, []string{
			"python3", "/w/MEMCACHED-1/app/definition/package/scripts/check.py", "CHECK", "/log/command-4.json",
			"/w/MEMCACHED-1/app/definition/package", "/log/structured-out-4.json", "INFO", "/w/MEMCACHED-1",
		}},
		{Order{Command: "PING", Task: 3}, []string{"bash", "-c", "echo pong"}},
		{Order{Command: plan.CommandInstall, Task: 5, Addon: 1}, []string{
			"python3", "/w/MEMCACHED-1/addon/definition/application.addon.stats/package/scripts/stats.py", "INSTALL",
			"/log/command-5.json", "/w/MEMCACHED-1/app/definition/package", "/log/structured-out-5.json", "INFO",
			"/w/MEMCACHED-1",
		}},
		{Order{Command: plan.CommandInstall, Task: 6, Addon: 2}, []string{"bash", "-c", "echo more"}},
	} {
		if got := c.order.Argv(s, "/log", "/w/MEMCACHED-1"); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.order.Command, got, c.want)
		}
	}
}

func TestParsePID(t *testing.T) {
	for text, want := range map[string]int{"17": 17, " 17\n": 17, "17 18": 0, "": 0, "-3": 0, "0": 0, "x": 0} {
		got, ok := ParsePID(text)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%q: got %d, %t", text, got, ok)
		}
	}
}
