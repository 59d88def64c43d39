package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

func mustBuild(t testing.TB, app appdef.App, req Request) Plan {
	t.Helper()
	p, problems := Build(app, req)
	if len(problems) != 0 {
		t.Fatalf("Build: %v", problems)
	}
	return p
}

func noFramework(Plan, registry.Roster) (env, files map[string]string) { return nil, nil }

// A component may have a range of its own.
func TestNeedsOfAComponentsOwnRange(t *testing.T) {
	app := with(trainingApp(), "ps", func(c *appdef.Component) {
		c.Config = maps.Clone(c.Config)
		c.Config[appdef.AllowedPortsKey] = "7000-7010"
	})
	app.Settings.AllowedPorts = "9000-9010"
	for component, want := range map[string]string{"ps": "7000-7010", "worker": "9000-9010"} {
		if got := NeedsOf(app, component, 0).Ports[0].Allowed; got != want {
			t.Errorf("%s: got %s, want %s", component, got, want)
		}
	}
}

func TestNeeds(t *testing.T) {
	app := with(trainingApp(), "ps", func(c *appdef.Component) {
		c.Config = maps.Clone(c.Config)
		c.Config["site.hbase.a"] = "${ps.ALLOCATED_PORT}{DEFAULT_9000}-${ps.ALLOCATED_PORT}"
		c.Limits.GPUs, c.Limits.GPUType = 2, "H200"
	})
	app.Settings.AllowedPorts = "9000-9010"
	got := NeedsOf(app, "ps", 0)
	want := Needs{
		Ports: []Port{
			{Name: "global.ps.port", Allowed: "9000-9010"},
			{Name: "hbase.a", Want: 9000, Allowed: "9000-9010", Shared: true},
			{Name: "hbase.a.2", Allowed: "9000-9010", Shared: true},
		},
		GPUs: 2, GPUType: "H200",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("NeedsOf (-got +want):\n%s", diff)
	}
	if got := NeedsOf(app, "nobody", 0); len(got.Ports) != 0 {
		t.Errorf("NeedsOf an unknown component = %v, want nothing", got)
	}
}

func TestRanks(t *testing.T) {
	app := trainingApp()
	var got []string
	for _, i := range Instances(&app) {
		p := mustBuild(t, app, request(i.Component, i.Index))
		got = append(got, fmt.Sprintf("%s %d/%d %s", i, p.Who.Rank, p.Who.WorldSize, strings.Join(p.Barrier.WaitsFor, ",")))
	}
	want := []string{
		"ps-0 0/5 ps=2,worker=3", "ps-1 1/5 ps=2,worker=3", "worker-0 2/5 ps=2,worker=3",
		"worker-1 3/5 ps=2,worker=3", "worker-2 4/5 ps=2,worker=3", "tensorboard-0 5/5 ",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("ranks (-got +want):\n%s", diff)
	}
}

func TestGang(t *testing.T) {
	app := with(trainingApp(), "ps", func(c *appdef.Component) {
		c.Settings.Restart.Scope, c.Settings.Restart.Explicit, c.Settings.Stop.Grace = appdef.ScopeNever, true, 45
	})
	facts := Gang(app, Request{AppID: "d1", Run: "7", Digest: "abc", Instances: map[string]int{"worker": 9}})
	var got []string
	for _, c := range facts.Components {
		got = append(got, fmt.Sprintf("%s %s n=%d %s waited=%t ends=%t fails=%t budget=%d/%v",
			c.Name, c.Role, c.Count, c.Scope, c.Waited, c.Ends, c.Fails, c.Budget.Max, c.Budget.Window))
	}
	want := []string{
		"ps ps n=2 never waited=true ends=false fails=true budget=0/5m0s",
		"worker worker n=9 instance waited=true ends=true fails=true budget=5/5m0s",
		"tensorboard service n=1 instance waited=false ends=false fails=false budget=5/5m0s",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("Gang (-got +want):\n%s", diff)
	}
	if facts.App != "d1" || facts.Run != "7" || facts.Digest != "abc" || facts.GangBudget.Max != 3 ||
		facts.StopGrace != Seconds(45) || facts.Barrier != Seconds(1800) {
		t.Errorf("Gang = %+v", facts)
	}
}

func TestCommand(t *testing.T) {
	args := func(s string) func(*appdef.Component) {
		return func(c *appdef.Component) { c.Settings.TFArgs = &s }
	}
	tests := []struct {
		name, component string
		change          func(*appdef.Component)
		framework       string
		want            string // argv, one per line
		problem         string
	}{
		{
			name: "built-in", component: "worker",
			want: "python3\n${WORK}/worker-0/app/install/mnist.py\n--ps_hosts={{tf.ps_hosts}}\n--worker_hosts={{tf.worker_hosts}}\n" +
				"--job_name={{tf.job_name}}\n--task_index={{tf.task_index}}\n--ckp_dir=hdfs://nn/user/ada/ckpt\n--work_dir=${WORK}/worker-0/app/install",
		},
		{
			name: "built-in with data, a prefix and another python", component: "ps",
			change: func(c *appdef.Component) {
				c.Settings.Python = "/opt/py"
				c.Config = map[string]string{
					"site.global.user.scripts.entry": "/opt/t.py", "site.global.user.checkpoint.prefix": "hdfs://nn/x/",
					"site.global.user.data.dir": "${@//site/global/base}/data", "site.global.base": "hdfs://nn",
					"site.global.ps.port": "2222",
				}
			},
			want: "/opt/py\n/opt/t.py\n--ps_hosts={{tf.ps_hosts}}\n--worker_hosts={{tf.worker_hosts}}\n" +
				"--job_name={{tf.job_name}}\n--task_index={{tf.task_index}}\n--ckp_dir=hdfs://nn/x/d1/checkpoints\n" +
				"--work_dir=${WORK}/ps-0/app/install\n--data_dir=hdfs://nn/data",
		},
		{
			name: "own arguments", component: "worker", change: args(`--ps {{tf.ps_hosts}} --name 'a b'`),
			want: "python3\n${WORK}/worker-0/app/install/mnist.py\n--ps\n{{tf.ps_hosts}}\n--name\na b",
		},
		{name: "open quote", component: "worker", change: args(`'a`), problem: `got "'a", want arguments as a shell reads them; a quote is not closed`},
		{
			name: "tensorboard", component: "tensorboard",
			want: "python3\n-m\ntensorboard.main\n--logdir=hdfs://nn/user/ada/ckpt\n--bind_all\n--port={{port.global.board}}",
		},
		{
			name: "tensorboard without a port", component: "tensorboard",
			change: func(c *appdef.Component) {
				c.Config = map[string]string{"site.global.board": "6006"}
			},
			problem: "got no port, want a site.global key with ${tensorboard.ALLOCATED_PORT}",
		},
		{
			name: "no entry", component: "worker",
			change:  func(c *appdef.Component) { c.Config = map[string]string{"site.global.worker.port": "1"} },
			problem: "got no script to run, want site.global.user.scripts.entry or muster.command",
		},
		{
			name: "script without a built-in", component: "worker", framework: "none",
			problem: `got commandScript "scripts/tensorflow.py", want muster.command; set muster.command for component worker`,
		},
		{
			name: "nothing at all", component: "worker", framework: "none", change: func(c *appdef.Component) { c.CommandScript = nil },
			problem: "got nothing that says what to run, want muster.command",
		},
		{
			name: "shell text", component: "worker", framework: "none",
			change: func(c *appdef.Component) {
				c.Settings.Command = "cd ${AGENT_WORK_ROOT} && W=1 run --port ${@//site/global/worker.port} ${ps_HOST} ${W} ${WORK} ${x:-y} {{checkpoint}} ${USER}"
			},
			want: "bash\n-c\ncd ${WORK}/worker-0 && W=1 run --port {{port.global.worker.port}} ${ps_HOST} ${W} ${WORK-} ${x:-y} {{checkpoint}} ada",
		},
		{
			name: "shell text with an unknown key", component: "worker",
			change:  func(c *appdef.Component) { c.Settings.Command = "run ${@//site/global/nothing}" },
			problem: "got ${@//site/global/nothing}, want a key that the configuration has",
		},
		{
			name: "shell text with a client's name", component: "worker",
			change:  func(c *appdef.Component) { c.Settings.Command = "run ${ZK_HOST}" },
			problem: "got ${ZK_HOST}, which has no value here, want a value for ZK_HOST; give --set ZK_HOST=VALUE",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			app := trainingApp()
			if tt.change != nil {
				app = with(app, tt.component, tt.change)
			}
			if tt.framework != "" {
				app.Settings.Framework = tt.framework
			}
			p, problems := Build(app, request(tt.component, 0))
			if tt.problem != "" {
				if !strings.Contains(problems.Error(), tt.problem) {
					t.Errorf("problems = %q, want one with %q", problems.Error(), tt.problem)
				}
				return
			}
			if len(problems) != 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(strings.Join(p.Process.Argv, "\n"), tt.want); diff != "" {
				t.Errorf("argv (-got +want):\n%s", diff)
			}
		})
	}
}

func TestShellIsTheCallersFact(t *testing.T) {
	app := with(trainingApp(), "ps", func(c *appdef.Component) { c.Settings.Command = "true" })
	req := request("ps", 0)
	req.Shell = "sh"
	if got := mustBuild(t, app, req).Process.Argv; !slices.Equal(got, []string{"sh", "-c", "true"}) {
		t.Errorf("argv = %q", got)
	}
}

func TestWho(t *testing.T) {
	for _, tt := range []struct {
		component string
		index     int
		want      string
	}{
		{"nobody", 0, `command line#: got component "nobody", want one of tensorboard, worker, ps`},
		{"worker", 3, "command line#: got index 3 of worker, want 0 to 2; give --instances worker=N for more"},
		{"worker", -1, "command line#: got index -1 of worker, want 0 to 2; give --instances worker=N for more"},
	} {
		_, problems := Build(trainingApp(), request(tt.component, tt.index))
		if problems.Error() != tt.want || !problems.Usage() {
			t.Errorf("Build(%s-%d) = %q, want %q and the command line at fault", tt.component, tt.index, problems, tt.want)
		}
	}
}

func TestStage(t *testing.T) {
	app := trainingApp()
	app.Packages = []appdef.Package{
		{Type: "folder", Name: "files"}, {Type: "tarball", Name: "files/x.tar.gz"}, {Type: "zip", Name: "y.zip"}, {Type: "rpm", Name: "gcc"},
	}
	p := mustBuild(t, app, request("ps", 1))
	want := []StageItem{
		{Name: "package", Kind: "package", From: "${WORK}/package", To: "${WORK}/ps-1/app/definition"},
		{Name: "files", Kind: "folder", From: "${WORK}/ps-1/app/definition/package/files", To: "${WORK}/ps-1/app/install"},
		{Name: "files/x.tar.gz", Kind: "tarball", From: "${WORK}/ps-1/app/definition/package/files/x.tar.gz", To: "${WORK}/ps-1/app/install"},
		{Name: "y.zip", Kind: "zip", From: "${WORK}/ps-1/app/definition/package/y.zip", To: "${WORK}/ps-1/app/install"},
	}
	if diff := cmp.Diff(p.Stage, want); diff != "" {
		t.Errorf("stage (-got +want):\n%s", diff)
	}
	if w := appdef.Problems(p.Warnings).Error(); strings.Contains(w, "rpm") {
		t.Errorf("warnings = %q, want none about rpm: the loader has told of it", w)
	}
	for _, name := range []string{"../../etc", "/etc", ""} {
		app.Packages = []appdef.Package{{Type: "folder", Name: name}}
		if _, problems := Build(app, request("ps", 1)); len(problems) != 1 && name != "" {
			t.Errorf("package %q: problems %v, want one", name, problems)
		}
	}
}

func TestExports(t *testing.T) {
	app := with(trainingApp(), "ps", func(c *appdef.Component) {
		c.ComponentExports = []appdef.Export{{Name: "me", Value: "${THIS_HOST}/${site.global.ps.port}"}}
	})
	p := mustBuild(t, app, request("ps", 0))
	want := []Export{
		{
			Group: "ps", Name: "host_port", Template: "${ps_HOST}:${site.global.ps.port}", Address: true,
			Value: "{{host}}:{{port.global.ps.port}}",
		},
		{Group: "ComponentInstanceData", Name: "me", Template: "${THIS_HOST}/${site.global.ps.port}", Value: "{{host}}/{{port.global.ps.port}}"},
	}
	if diff := cmp.Diff(p.Exports, want); diff != "" {
		t.Errorf("exports (-got +want):\n%s", diff)
	}
	for _, tt := range []struct{ host, address, me string }{
		{"node7", "node7:2001", "node7/2001"},
		{"fd00::7", "[fd00::7]:2001", "fd00::7/2001"},
	} {
		exports, address := Publish(p, tt.host, map[string]int{"global.ps.port": 2001})
		if address != tt.address || exports["ps.host_port"] != tt.address || exports["ComponentInstanceData.me"] != tt.me {
			t.Errorf("Publish on %s = %v, %q, want %q", tt.host, exports, address, tt.address)
		}
	}
	if exports, address := Publish(mustBuild(t, app, request("tensorboard", 0)), "h", nil); address != "" || exports["tensorboard.url"] != "http://h:0" {
		t.Errorf("Publish of a service = %v, %q", exports, address)
	}
}

func TestLauncherPorts(t *testing.T) {
	for name, granted := range map[string]int{"global.ps.port": 7001, "ps_port": 7002, "GLOBAL_PS_PORT": 7003} {
		req := request("ps", 0)
		req.Allocation.Ports = map[string]int{name: granted, "other": 1}
		p := mustBuild(t, trainingApp(), req)
		if p.Ports[0].Port != granted || !maps.Equal(p.Allocation.Ports, map[string]int{"global.ps.port": granted}) {
			t.Errorf("label %s: ports %v, allocation %v, want %d", name, p.Ports, p.Allocation.Ports, granted)
		}
	}
}

func TestLimits(t *testing.T) {
	tests := []struct {
		name     string
		memory   int
		envelope Envelope
		want     int
		warning  string
	}{
		{"as asked", 512, Envelope{}, 512, ""},
		{"room enough", 512, Envelope{MemoryMB: 544}, 512, ""},
		{"tight", 512, Envelope{MemoryMB: 512}, 480, "got 512 MB, want at most 480 MB"},
		{"max", appdef.Max, Envelope{MemoryMB: 1000}, 968, ""},
		{"max of a machine", appdef.Max, Envelope{}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request("ps", 0)
			req.Allocation.Envelope = tt.envelope
			app := with(trainingApp(), "ps", func(c *appdef.Component) { c.Limits.MemoryMB = tt.memory })
			p := mustBuild(t, app, req)
			if p.Limits.MemoryMB != tt.want || p.Limits.ShmMB != tt.want/2 {
				t.Errorf("limits = %+v, want memory %d", p.Limits, tt.want)
			}
			if w := appdef.Problems(p.Warnings).Error(); !strings.Contains(w, tt.warning) || (tt.warning == "") != (w == "") {
				t.Errorf("warnings = %q, want %q", w, tt.warning)
			}
		})
	}
	req := request("ps", 0)
	req.Allocation.Launcher = "nomad"
	p := mustBuild(t, with(trainingApp(), "ps", func(c *appdef.Component) { c.Limits.MemoryMB = appdef.Max }), req)
	if w := appdef.Problems(p.Warnings).Error(); p.Limits.MemoryMB != 0 || !strings.Contains(w, "got max, want a number of MB") {
		t.Errorf("max of what a launcher does not tell: %d MB, %q", p.Limits.MemoryMB, w)
	}
}

func TestUnenforced(t *testing.T) {
	req := request("ps", 0)
	req.Engine.Cannot = map[string]string{"vcores": "nice only", "pids": "no cgroup", "memory_mb": "a watchdog looks once a second", "shm_mb": "no mount"}
	p := mustBuild(t, trainingApp(), req)
	want := []unenforced{{"memory_mb", "a watchdog looks once a second"}, {"vcores", "nice only"}}
	if diff := cmp.Diff(p.Engine.Unenforced, want); diff != "" {
		t.Errorf("unenforced: only what was asked for (-got +want):\n%s", diff)
	}
	if len(p.Warnings) != 2 {
		t.Errorf("warnings = %v, want one for each", p.Warnings)
	}
}

func TestGrace(t *testing.T) {
	for window, want := range map[float64]float64{0: 30, 0.25: 0, 5: 3, 30: 28, 90: 30} {
		req := request("ps", 0)
		req.Allocation.KillWindow = window
		p := mustBuild(t, trainingApp(), req)
		if p.Stop.Grace != want {
			t.Errorf("kill window %v: grace %v, want %v", window, p.Stop.Grace, want)
		}
		if got := len(p.Warnings) > 0; got != (want == 0) {
			t.Errorf("kill window %v: warnings %v", window, p.Warnings)
		}
	}
	req := request("ps", 0)
	req.Allocation.KillWindow = 5
	p := mustBuild(t, with(trainingApp(), "ps", func(c *appdef.Component) { c.Settings.Stop.Grace = 4 }), req)
	if w := appdef.Problems(p.Warnings).Error(); p.Stop.Grace != 4 || !strings.Contains(w, "got 4 s, want at most 3 s") {
		t.Errorf("a grace longer than the window: %v, warnings %q", p.Stop, w)
	}
}

func TestWarnings(t *testing.T) {
	app := with(trainingApp(), "worker", func(c *appdef.Component) {
		c.Config = maps.Clone(c.Config)
		c.Config["site.global.zk"] = "${ZK_HOST}:2181"
		c.Config["site.global.worker.port"] = "${worker.ALLOCATED_PORT}"
		c.Settings.ClusterExport = appdef.ExportRef{}
	})
	app.Places = map[string]appdef.Place{
		"/config/site.global.zk":                       {File: "appConfig.json", Pointer: "/global/site.global.zk", Line: 3},
		"/components/1/config/site.global.worker.port": {File: "appConfig.json", Pointer: "/components/worker/site.global.worker.port"},
	}
	got := appdef.Problems(mustBuild(t, app, request("worker", 0)).Warnings).Error()
	want := `app#/components/1/comp_exports: got no export of the form host:port, want one, as the other components have; without it worker is not in TensorFlow's cluster
appConfig.json#/components/worker/site.global.worker.port: got "${worker.ALLOCATED_PORT}", want {PER_CONTAINER} behind the port; instances on one host cannot share a number: those after the first get another
appConfig.json#/global/site.global.zk: got ${ZK_HOST}, which has no value here, want a value for ZK_HOST; it is empty in a configuration, and as written in an export; give --set ZK_HOST=VALUE`
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("warnings (-got +want):\n%s", diff)
	}
	app.Vars = map[string]string{"ZK_HOST": "zk1"}
	if w := appdef.Problems(mustBuild(t, app, request("worker", 0)).Warnings).Error(); strings.Contains(w, "ZK_HOST") {
		t.Errorf("ZK_HOST has a value, and still: %s", w)
	}
}

// A port may stand in the package's defaults alone: the warning tells their file, the key and what is there.
func TestWarnsOfSharedPortInDefaults(t *testing.T) {
	app := trainingApp()
	app.Defaults = map[string]map[string]string{"web": {"http.port": "${worker.ALLOCATED_PORT}"}}
	app.Places = map[string]appdef.Place{"/defaults/web": {File: "configuration/web.xml"}}
	got := appdef.Problems(mustBuild(t, app, request("worker", 0)).Warnings).Error()
	want := `configuration/web.xml#/http.port: got "${worker.ALLOCATED_PORT}", want {PER_CONTAINER} behind the port; ` +
		`instances on one host cannot share a number: those after the first get another`
	if !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestGangScopeHasTheAppsBudget(t *testing.T) {
	app := with(trainingApp(), "ps", func(c *appdef.Component) {
		c.Settings.Restart.Scope, c.Settings.Restart.Explicit = appdef.ScopeGang, true
	})
	want := Restart{Scope: "gang", Budget: 3, Window: 60, BackoffMin: 1, BackoffMax: 60, Refill: "never"}
	if diff := cmp.Diff(mustBuild(t, app, request("ps", 0)).Restart, want); diff != "" {
		t.Errorf("restart (-got +want):\n%s", diff)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                   nil,
		"  a  b\tc\n":        {"a", "b", "c"},
		`'a b' "c d" e\ f`:   {"a b", "c d", "e f"},
		`a'b'"c"`:            {"abc"},
		`'' ""`:              {"", ""},
		`"a\"b\n" '\n' \\ $`: {`a"b\n`, `\n`, `\`, "$"},
	} {
		got, err := words(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("words(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`'a`, `a"b`} {
		if got, err := words(text); err == nil {
			t.Errorf("words(%q) = %q, want an error", text, got)
		}
	}
}

// The same definition gives the same bytes, whatever order Go's maps have.
func TestPlanDoesNotDependOnMapOrder(t *testing.T) {
	build := func() []byte {
		app := with(trainingApp(), "worker", func(c *appdef.Component) {
			config := map[string]string{}
			keys := slices.Sorted(maps.Keys(c.Config))
			rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			for _, k := range keys {
				config[k] = c.Config[k]
			}
			for i := range 5 {
				config[fmt.Sprintf("site.global.p%d", i)] = "${worker.ALLOCATED_PORT}"
			}
			c.Config = config
			c.Settings.Env = map[string]string{"A": "${@//site/global/p1}", "B": "${nope}", "C": "${nope2}", "D": "1"}
		})
		p, problems := Build(app, request("worker", 1))
		start, _ := Finish(p, ExampleRoster(app, request("worker", 1)), StartFacts{}, noFramework)
		p.Start = &start
		return append(p.JSON(), problems.Error()...)
	}
	first := build()
	for range 50 {
		if diff := cmp.Diff(string(build()), string(first)); diff != "" {
			t.Fatalf("two builds differ (-got +want):\n%s", diff)
		}
	}
}

func TestBuildChangesNoArgument(t *testing.T) {
	app, req := trainingApp(), request("worker", 0)
	req.Instances = map[string]int{"worker": 7}
	req.Allocation.Ports = map[string]int{"worker_port": 1}
	mustBuild(t, app, req)
	if diff := cmp.Diff(app, trainingApp()); diff != "" {
		t.Errorf("the App changed (-got +want):\n%s", diff)
	}
	if !maps.Equal(req.Allocation.Ports, map[string]int{"worker_port": 1}) {
		t.Errorf("the allocation changed: %v", req.Allocation)
	}
}

func TestJSONHasNoNull(t *testing.T) {
	app := trainingApp()
	for _, component := range []string{"ps", "tensorboard"} {
		for line := range strings.Lines(string(mustBuild(t, app, request(component, 0)).JSON())) {
			if strings.Contains(line, "null") && !strings.Contains(line, "min_") {
				t.Errorf("%s: %s", component, strings.TrimSpace(line))
			}
		}
	}
}

func BenchmarkBuild10000(b *testing.B) {
	app := trainingApp().WithCounts(map[string]int{"worker": 9_900, "ps": 99})
	req := request("", 0)
	req.Digest = appdef.Digest(app)
	instances := Instances(&app)
	b.ReportAllocs()
	for b.Loop() {
		for _, i := range instances {
			req.Component, req.Index = i.Component, i.Index
			if _, problems := Build(app, req); len(problems) != 0 {
				b.Fatal(problems)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N), "s/app")
}
