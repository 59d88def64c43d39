package plan

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// scriptedApp is trainingApp with a worker that a script runs.
func scriptedApp() appdef.App {
	return with(trainingApp(), "worker", func(c *appdef.Component) {
		c.Settings.Start, c.Settings.StatusInterval = appdef.StartScript, 7
		c.CommandScript.Timeout = 30
		c.PublishConfig = true
	})
}

func TestScriptIsPlanned(t *testing.T) {
	p := mustBuild(t, scriptedApp(), Request{AppID: "a", Component: "worker", Index: 1, Allocation: Allocation{User: "u"}, HostFacts: HostFacts{Given: map[string]string{"PYTHONPATH": "/own"}}})
	s := p.Script
	if s == nil || s.File != "scripts/tensorflow.py" || s.Timeout != 30 || s.StatusInterval != 7 {
		t.Fatalf("got %+v", s)
	}
	want := []string{
		"python3", "${WORK}/worker-1/app/definition/package/scripts/tensorflow.py", "START", "${LOG}/worker-1/command-{{task}}.json",
		"${WORK}/worker-1/app/definition/package", "${LOG}/worker-1/structured-out-{{task}}.json", "INFO", "${WORK}/worker-1",
	}
	if d := cmp.Diff(want, p.Process.Argv); d != "" {
		t.Errorf("argv (-want +got)\n%s", d)
	}
	if got, want := p.Process.Env["PYTHONPATH"], "${WORK}/worker-1/infra/agent/slider-agent:/own"; got != want {
		t.Errorf("PYTHONPATH: got %s, want %s", got, want)
	}
	kinds := []string{}
	for _, item := range p.Stage {
		kinds = append(kinds, item.Kind)
	}
	if want := []string{StagePackage, StageLibrary}; !slices.Equal(kinds, want) {
		t.Errorf("stage: got %v, want %v: INSTALL itself brings the packages", kinds, want)
	}
	if got := s.Configurations["global"]["worker.port"]; got != portToken+"global.worker.port}}" {
		t.Errorf("worker.port before the claim: got %q", got)
	}
}

// TestScriptIsFilled: what the claim and the roster say stands in the configuration when a command reads it.
func TestScriptIsFilled(t *testing.T) {
	p := Resolve(mustBuild(t, with(scriptedApp(), "worker", func(c *appdef.Component) {
		c.Config["site.global.servers"] = "${ps_HOST}"
	}), Request{AppID: "a", Component: "worker", Allocation: Allocation{User: "u"}}), Dirs{Work: "/w", Log: "/l"})
	roster := registry.Roster{Rows: []registry.Row{
		{Instance: registry.Instance{Component: "ps"}, Addr: "h1:1"}, {Instance: registry.Instance{Component: "ps", Index: 1}, Addr: "h2:1"},
	}}
	facts := StartFacts{Ports: map[string]int{"global.worker.port": 2222}}
	before := p.Script.Filled(p, registry.Roster{}, facts).Configurations["global"]
	after := p.Script.Filled(p, roster, facts).Configurations["global"]
	for key, want := range map[string][2]string{
		"worker.port": {"2222", "2222"}, "servers": {"", "h1,h2"}, "app_pid_dir": {"/w/worker-0/app/run", "/w/worker-0/app/run"},
		"ps.port": {"0", "0"},
	} {
		if before[key] != want[0] || after[key] != want[1] {
			t.Errorf("%s: got %q before the barrier and %q after, want %q and %q", key, before[key], after[key], want[0], want[1])
		}
	}
}

// TestAddons: which INSTALL of an add-on runs in a component, and that a component without INSTALL is warned of.
func TestAddons(t *testing.T) {
	install := appdef.Command{Name: CommandInstall, Exec: "echo {app_root}", Type: "SHELL"}
	script := &appdef.CommandScript{Script: "scripts/x.py", Type: "PYTHON", Timeout: 9}
	app := scriptedApp()
	app.Addons = []appdef.Addon{
		{Name: "all", Path: "addons/all", Components: []appdef.AddonComponent{
			{Name: "ALL", Commands: []appdef.Command{{Name: CommandStart, Exec: "true"}, install}}, {Name: "worker", Script: script},
		}},
		{Name: "others", Path: "o.zip", Components: []appdef.AddonComponent{{Name: "ps", Script: script}}},
		{Name: "started", Path: "s", Components: []appdef.AddonComponent{{Name: "ALL", Commands: []appdef.Command{{Name: CommandStart, Exec: "true"}}}}},
		{Name: "gone", Path: "/opt/gone"},
		{Name: "itself", Path: ".", Components: []appdef.AddonComponent{{Name: "ALL", Script: script}}},
	}
	root := Work + "/worker-0/addon/definition/application.addon.all"
	want := []ScriptAddon{
		{Name: "all", Root: root, ScriptCommand: ScriptCommand{Shell: "echo " + Work + "/worker-0/app/install"}, Timeout: 30},
		{Name: "all", Root: root, ScriptCommand: ScriptCommand{File: "scripts/x.py"}, Timeout: 9},
	}
	p := mustBuild(t, app, request("worker", 0))
	if d := cmp.Diff(want, p.Script.Addons); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := p.Script.each(func(s string) string { return strings.ReplaceAll(s, Work, "/w") }).Addons[0].Root; !strings.HasPrefix(got, "/w/") {
		t.Errorf("root: got %s", got)
	}
	line := with(app, "worker", func(c *appdef.Component) { c.Settings.Command, c.Settings.CommandFrom = "true", "muster.command" })
	p = mustBuild(t, line, request("worker", 0))
	if p.Script != nil || !slices.ContainsFunc(p.Warnings, func(w appdef.Problem) bool {
		return strings.Contains(w.Got, `the add-on "all"`) && strings.Contains(w.Hint, "its INSTALL is not run in worker")
	}) {
		t.Errorf("got %v", p.Warnings)
	}
}

// TestWhatStartRuns: which of a component's ways to be run is taken.
func TestWhatStartRuns(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*appdef.Component)
		scripted bool
		first    string
	}{
		"a script": {func(*appdef.Component) {}, true, "python3"},
		"muster.command wins": {func(c *appdef.Component) {
			c.Settings.Command, c.Settings.CommandFrom = "echo", "muster.command"
		}, false, "bash"},
		"builtin": {func(c *appdef.Component) {
			c.Settings.Start, c.Settings.CommandFrom = appdef.StartBuiltin, appdef.StartBuiltin
			c.Config["site.global.user.checkpoint.dir"] = "/ckpt"
		}, false, "python3"},
		"commands": {func(c *appdef.Component) {
			c.CommandScript, c.Settings.CommandFrom, c.Settings.Command = nil, "commands", "serve"
			c.Commands = []appdef.Command{{Name: "START", Exec: "serve", Type: "SHELL"}, {Name: "STATUS", Exec: "scripts/s.py", Type: "PYTHON"}}
		}, true, "bash"},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustBuild(t, with(scriptedApp(), "worker", c.change), Request{AppID: "a", Component: "worker", Allocation: Allocation{User: "u"}})
			if (p.Script != nil) != c.scripted || path.Base(p.Process.Argv[0]) != c.first {
				t.Errorf("got script %v and %v, want %t and %s first", p.Script != nil, p.Process.Argv, c.scripted, c.first)
			}
		})
	}
}

func TestNamesInCommands(t *testing.T) {
	for text, want := range map[string]string{
		"{app_root}/bin/run {app_root}{pid_file}": "/opt/app/bin/run /opt/app${WORK}/worker-0/app/run/component.pid",
		"cat <${pid_file} ${app_root}":            "cat <${pid_file} ${app_root}",
		"awk '{{print $1}}' {HOME} {checkpoint}":  "awk '{{print $1}}' {HOME} {checkpoint}",
	} {
		for _, start := range []string{appdef.StartScript, appdef.StartBuiltin} {
			app := with(scriptedApp(), "worker", func(c *appdef.Component) {
				c.CommandScript, c.Settings.CommandFrom, c.Settings.Command = nil, "commands", text
				c.Commands = []appdef.Command{{Name: "START", Exec: text, Type: "SHELL"}}
				c.Settings.Start = start
				c.Config["site.global.app_root"] = "/opt/app"
			})
			p := mustBuild(t, app, Request{AppID: "a", Component: "worker", Allocation: Allocation{User: "u"}})
			if got := p.Process.Argv[len(p.Process.Argv)-1]; got != want {
				t.Errorf("muster.start=%s: got %q, want %q", start, got, want)
			}
		}
	}
}

func TestPublishedBy(t *testing.T) {
	app := scriptedApp()
	app.ExportGroups = append(app.ExportGroups, appdef.ExportGroup{Name: "links", Exports: []appdef.Export{
		{Name: "first", Value: "http://${WORKER_HOST}:${site.global.worker.port}/"},
	}})
	app = with(app, "worker", func(c *appdef.Component) {
		c.AppExports = []appdef.ExportRef{{Group: "links", Name: "first"}}
		c.Config["site.web.port"] = "${@//site/global/worker.port}"
		c.Config["site.web.logs"] = "${AGENT_LOG_ROOT}/web"
		c.Config["site.web.hosts"] = "${WORKER_HOST}" // as scripts are told: of each instance
	})
	app.ExportedConfigs = []string{"web"}
	req := Request{AppID: "a", Component: "worker", Allocation: Allocation{Host: "h7", Ports: map[string]int{"global.worker.port": 2223}}}
	got := PublishedBy(app, req, Around{
		Hosts: map[string][]string{"worker": {"h6", "h7"}}, Ports: func(string) map[string]int { return nil }, Work: "/w/worker-0", Log: "/l/worker-0",
	})
	want := Published{
		Configs: map[string]map[string]string{"web": {"port": "2223", "logs": "/l/worker-0/web", "hosts": "h6,h7"}},
		Exports: map[string]string{"links.first": "http://h6:2223/"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// If no MASTER has publishConfig, each of them publishes; a SLAVE publishes if it has it.
func TestWhoPublishesItsConfiguration(t *testing.T) {
	type role struct {
		category string
		says     bool
	}
	for name, tt := range map[string]struct {
		roles []role
		want  []bool
	}{
		"nobody says it":   {[]role{{"MASTER", false}, {"MASTER", false}, {"SLAVE", false}}, []bool{true, true, false}},
		"one master does":  {[]role{{"MASTER", false}, {"MASTER", true}, {"SLAVE", false}}, []bool{false, true, false}},
		"a slave does":     {[]role{{"MASTER", false}, {"SLAVE", true}}, []bool{true, true}},
		"there is no more": {[]role{{"SLAVE", false}}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			app := appdef.App{Config: map[string]string{"site.global.k": "v"}}
			for i, r := range tt.roles {
				c := appdef.Component{Name: string(rune('a' + i)), Category: r.category}
				c.PublishConfig = r.says
				app.Components = append(app.Components, c)
			}
			var got []bool
			for _, c := range app.Components {
				got = append(got, len(PublishedBy(app, Request{Component: c.Name}, Around{}).Configs) > 0)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// A package asks for Kerberos where the cluster does, unless its definition knows better.
func TestSecurityEnabled(t *testing.T) {
	for _, test := range []struct {
		name, written string
		facts         *HadoopFacts
		want          string
	}{
		{"no Hadoop", "", nil, "false"},
		{"without Kerberos", "", &HadoopFacts{Conf: "/etc/hadoop"}, "false"},
		{"with Kerberos", "", &HadoopFacts{Conf: "/etc/hadoop", Tickets: true}, "true"},
		{"the definition says no", "false", &HadoopFacts{Conf: "/etc/hadoop", Tickets: true}, "false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			app := with(scriptedApp(), "worker", func(c *appdef.Component) {
				if test.written != "" {
					c.Config["site.global.security_enabled"] = test.written
				}
			})
			p, problems := Build(app, Request{
				Component: "worker", Allocation: Allocation{User: "ann"}, HostFacts: HostFacts{Hadoop: test.facts},
			})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := p.Script.Configurations["global"]["security_enabled"]; got != test.want {
				t.Errorf("got %q, want %s", got, test.want)
			}
		})
	}
}

// ${JAVA_HOME} is what the command line and the definition say, else the Java of the host's Hadoop; of an image, none of
// the host's.
func TestJavaHome(t *testing.T) {
	facts := &HadoopFacts{Conf: "/etc/hadoop", Java: "/usr/lib/jvm/hadoop"}
	for _, test := range []struct {
		name, written, given string
		facts                *HadoopFacts
		image                *ImageFacts
		want, warning        string
	}{
		{name: "nobody knows one"},
		{name: "the host's Hadoop", facts: facts, want: "/usr/lib/jvm/hadoop"},
		{name: "the definition", written: "/opt/jdk", facts: facts, want: "/opt/jdk"},
		{name: "the definition leaves it to the host", written: "${JAVA_HOME}", facts: facts, want: "/usr/lib/jvm/hadoop"},
		{name: "the command line", written: "/opt/jdk", given: "/opt/other", facts: facts, want: "/opt/other"},
		{name: "in an image", facts: facts, image: &ImageFacts{}},
		{
			name: "left to nobody", written: "${JAVA_HOME}",
			warning: `got "${JAVA_HOME}", which has no value here, want the folder of a Java; scripts get none; give --set JAVA_HOME=PATH`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			app := with(scriptedApp(), "worker", func(c *appdef.Component) {
				if test.written != "" {
					c.Config["java_home"] = test.written
				}
			})
			if test.given != "" {
				app.Vars = map[string]string{"JAVA_HOME": test.given}
			}
			p, problems := Build(app, Request{
				Component: "worker", Allocation: Allocation{User: "ann"}, HostFacts: HostFacts{Hadoop: test.facts, Image: test.image},
			})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := p.Script.JavaHome; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got := appdef.Problems(p.Warnings).Error(); !strings.Contains(got, test.warning) || test.warning == "" && strings.Contains(got, "Java") {
				t.Errorf("got the warnings %q, want %q", got, test.warning)
			}
		})
	}
}
