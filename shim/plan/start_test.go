package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

func finish(t *testing.T, app appdef.App, req Request, facts StartFacts) Start {
	t.Helper()
	start, problems := Finish(mustBuild(t, app, req), ExampleRoster(app, req), facts, noFramework)
	if len(problems) != 0 {
		t.Fatalf("Finish: %v", problems)
	}
	return start
}

func TestStartArgv(t *testing.T) {
	command := func(text, resume string) func(*appdef.Component) {
		return func(c *appdef.Component) { c.Settings.Command, c.Settings.ResumeArgs = text, resume }
	}
	saved := StartFacts{Checkpoint: "/ckpt/7", CheckpointStep: 7}
	tests := []struct {
		name, component string
		index           int
		change          func(*appdef.Component)
		facts           StartFacts
		want            string
	}{
		{
			name: "built-in on a worker", component: "worker", index: 2,
			want: "python3 ${WORK}/worker-2/app/install/mnist.py --ps_hosts=host-0.example:20000,host-1.example:20000 " +
				"--worker_hosts=host-2.example:20000,host-3.example:20000,host-4.example:20000 --job_name=worker --task_index=2 " +
				"--ckp_dir=hdfs://nn/user/ada/ckpt --work_dir=${WORK}/worker-2/app/install",
		},
		{
			name: "claimed port", component: "tensorboard", facts: StartFacts{Ports: map[string]int{"global.board": 6006}},
			want: "python3 -m tensorboard.main --logdir=hdfs://nn/user/ada/ckpt --bind_all --port=6006",
		},
		{
			name: "hosts in both spellings", component: "worker", change: command("x ${ps_HOST} ${PS_HOST} ${OTHER_HOST}", ""),
			want: "bash -c x host-0.example,host-1.example host-0.example,host-1.example ${OTHER_HOST}",
		},
		{name: "no checkpoint yet", component: "ps", change: command("x", "--resume {{checkpoint}}"), want: "bash -c x"},
		{
			name: "resume arguments", component: "ps", change: command("x", "--resume {{checkpoint}} --step {{checkpoint.step}}"), facts: saved,
			want: "bash -c x --resume /ckpt/7 --step 7",
		},
		{
			name: "the command says where", component: "ps", change: command("x {{checkpoint}} {{checkpoint.dir}} y", "--resume"), facts: saved,
			want: "bash -c x /ckpt/7 hdfs://nn/user/ada/ckpt y",
		},
		{
			name: "the command says where, but there is none", component: "ps", change: command("x '{{checkpoint}}' '{{checkpoint.step}}'", "--resume"),
			want: "bash -c x '' ''",
		},
		{
			name: "resume arguments of the built-in command", component: "tensorboard", change: command("", "--a 'b {{checkpoint}}'"), facts: saved,
			want: "python3 -m tensorboard.main --logdir=hdfs://nn/user/ada/ckpt --bind_all --port=0 --a b /ckpt/7",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			app := trainingApp()
			if tt.change != nil {
				app = with(app, tt.component, tt.change)
			}
			got := strings.Join(finish(t, app, request(tt.component, tt.index), tt.facts).Argv, " ")
			if got != tt.want {
				t.Errorf("argv:\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestChiefIsTheFirstWorker(t *testing.T) {
	app := with(trainingApp(), "worker", func(c *appdef.Component) { c.Settings.Role, c.Instances = appdef.RoleChief, 1 })
	app.Components = append(app.Components, with(trainingApp(), "worker", func(c *appdef.Component) {
		c.Name, c.Priority = "trainer", 9
		c.Config = map[string]string{"site.global.worker.port": "2222", "site.global.user.scripts.entry": "m.py"}
		c.CompExports = []appdef.ExportRef{{Group: "trainer", Name: "a"}}
		c.Settings.ClusterExport = c.CompExports[0]
	}).Components[1])
	app.ExportGroups = append(app.ExportGroups, appdef.ExportGroup{
		Name: "trainer", Exports: []appdef.Export{{Name: "a", Value: "${trainer_HOST}:${site.global.worker.port}"}},
	})
	for component, want := range map[string]string{"worker": "--job_name=worker --task_index=0", "trainer": "--job_name=worker --task_index=1"} {
		argv := finish(t, app, request(component, 0), StartFacts{}).Argv
		if got := strings.Join(argv[4:6], " "); got != want {
			t.Errorf("%s: %s, want %s", component, got, want)
		}
		if want := "--worker_hosts=host-2.example:20000,host-3.example:2222,host-4.example:2222,host-5.example:2222"; argv[3] != want {
			t.Errorf("%s: %s, want %s", component, argv[3], want)
		}
	}
}

func TestStartEnv(t *testing.T) {
	app := with(trainingApp(), "worker", func(c *appdef.Component) {
		c.Settings.Env = map[string]string{
			"MODEL": "${@//site/global/user.scripts.entry}", "PEERS": "${ps_HOST}", "LANG": "C", "MUSTER_RANK": "99",
			"ZK": "${ZK_HOST}",
		}
		c.Settings.Secrets = map[string]string{"TOKEN": "file:/t"}
		c.Limits.GPUs = 2
	})
	req := request("worker", 1)
	req.Inherited = map[string]string{"PATH": "/bin", "LANG": "de", "CUDA_VISIBLE_DEVICES": "7"}
	req.Allocation.Devices = []string{"GPU-a", "GPU-b"}
	start := finish(t, app, req, StartFacts{
		Generation: 4, Attempt: 2, Host: "10.0.0.9", Ports: map[string]int{"global.worker.port": 2222}, Checkpoint: "/c/7",
		CheckpointStep: 7, StatusSocket: "/run/s", Secrets: map[string]string{"TOKEN": "hush"}, RosterText: []byte("{}"),
	})
	want := map[string]string{
		"PATH": "/bin", "LANG": "C", "MODEL": "mnist.py", "PEERS": "host-0.example,host-1.example", "ZK": "", "TOKEN": "hush",
		"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b", "GPU_NUM": "2",
		"MUSTER_APP_ID": "d1", "MUSTER_APP_NAME": "mnist", "MUSTER_COMPONENT": "worker", "MUSTER_INDEX": "1", "MUSTER_INSTANCE": "worker-1",
		"MUSTER_ROLE": "worker", "MUSTER_RANK": "3", "MUSTER_WORLD_SIZE": "5", "MUSTER_GENERATION": "4", "MUSTER_ATTEMPT": "2",
		"MUSTER_HOST": "10.0.0.9", "MUSTER_PORT": "2222", "MUSTER_PORT_GLOBAL_WORKER_PORT": "2222",
		"AGENT_WORK_ROOT": "${WORK}/worker-1", "AGENT_LOG_ROOT": "${LOG}/worker-1",
		"MUSTER_ROSTER_FILE": "${WORK}/worker-1/roster.json", "MUSTER_WORK_DIR": "${WORK}/worker-1", "MUSTER_LOG_DIR": "${LOG}/worker-1",
		"MUSTER_CHECKPOINT_DIR": "hdfs://nn/user/ada/ckpt", "MUSTER_CHECKPOINT": "/c/7", "MUSTER_STATUS_SOCKET": "/run/s",
	}
	if diff := cmp.Diff(start.Env, want); diff != "" {
		t.Errorf("env (-got +want):\n%s", diff)
	}
	req.Engine.Name = "container"
	if got := finish(t, app, req, StartFacts{StatusSocket: "/run/s"}).Env["MUSTER_STATUS_SOCKET"]; got != SocketInside {
		t.Errorf("in a container the agent is at %q, want %q", got, SocketInside)
	}
	if diff := cmp.Diff(start.Files, map[string]string{"roster.json": "{}"}); diff != "" {
		t.Errorf("files (-got +want):\n%s", diff)
	}
}

func TestSecretsStayOutOfThePlan(t *testing.T) {
	app := with(trainingApp(), "worker", func(c *appdef.Component) { c.Settings.Secrets = map[string]string{"TOKEN": "file:/where"} })
	req := request("worker", 0)
	req.Inherited = map[string]string{"SOME_HOST_VALUE": "/home/ada"}
	p := mustBuild(t, app, req)
	if text := string(p.JSON()); strings.Contains(text, "/where") || strings.Contains(text, "/home/ada") || !strings.Contains(text, `"TOKEN"`) {
		t.Errorf("the plan must have the secret's name alone, and nothing of the host:\n%s", text)
	}
}

func TestServiceStartsWithoutARoster(t *testing.T) {
	start, problems := Finish(mustBuild(t, trainingApp(), request("tensorboard", 0)), registry.Roster{}, StartFacts{Generation: 1}, noFramework)
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	if _, ok := start.Env["MUSTER_ROSTER_FILE"]; ok || len(start.Files) != 0 {
		t.Errorf("a roster file without a roster: %v, %v", start.Env["MUSTER_ROSTER_FILE"], start.Files)
	}
}

// The roster file is the roster, and a value too long for a variable moves to a file.
func TestLongValues(t *testing.T) {
	app := trainingApp().WithCounts(map[string]int{"worker": 6000})
	app = with(app, "worker", func(c *appdef.Component) { c.Settings.Command = "true" })
	req := request("worker", 0)
	roster := ExampleRoster(app, req)
	long := strings.Join(Addresses(roster.Rows), ",")
	framework := func(Plan, registry.Roster) (env, files map[string]string) {
		return map[string]string{"LONG": long, "EDGE": long[:mostVariable]}, map[string]string{"own": "x"}
	}
	p := Resolve(mustBuild(t, app, req), Dirs{Work: "/w", Log: "/l"})
	start, problems := Finish(p, roster, StartFacts{}, framework)
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	if _, ok := start.Env["LONG"]; ok || start.Env["LONG_FILE"] != "/w/worker-0/app/conf/env/LONG" || start.Files["app/conf/env/LONG"] != long {
		t.Errorf("LONG: LONG_FILE=%q, file of %d bytes", start.Env["LONG_FILE"], len(start.Files["app/conf/env/LONG"]))
	}
	if len(start.Env["EDGE"]) != mostVariable {
		t.Errorf("EDGE has %d bytes, want %d", len(start.Env["EDGE"]), mostVariable)
	}
	var got registry.Roster
	if err := json.Unmarshal([]byte(start.Files["roster.json"]), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, roster); diff != "" {
		t.Errorf("roster file (-got +want):\n%s", diff)
	}
	if start.Files["own"] != "x" {
		t.Errorf("the framework's file is lost: %v", slices.Collect(maps.Keys(start.Files)))
	}
}

func TestArgumentTooLong(t *testing.T) {
	app := trainingApp().WithCounts(map[string]int{"worker": 9000})
	req := request("worker", 0)
	_, problems := Finish(mustBuild(t, app, req), ExampleRoster(app, req), StartFacts{}, noFramework)
	if len(problems) != 1 || problems[0].Pointer != "/start/argv/3" {
		t.Errorf("problems = %v, want one about argument 3", problems)
	}
}

func TestResolve(t *testing.T) {
	req := request("worker", 1)
	p := mustBuild(t, trainingApp(), req)
	before := string(p.JSON())
	start, _ := Finish(p, ExampleRoster(trainingApp(), req), StartFacts{}, noFramework)
	p.Start = &start
	r := Resolve(p, Dirs{Work: "/w", Log: "/l"})
	if text := fmt.Sprintf("%s %v", r.JSON(), r.Exports); strings.Contains(text, Work) || strings.Contains(text, logDir) {
		t.Errorf("a folder is left open:\n%s", text)
	}
	if r.Process.Env["MUSTER_LOG_DIR"] != "/l/worker-1" || r.Stage[0].To != "/w/worker-1/app/definition" {
		t.Errorf("resolved = %v, %v", r.Process.Env, r.Stage)
	}
	p.Start = nil
	if string(p.JSON()) != before {
		t.Error("Resolve changed its argument")
	}
}

func TestClusterDoesNotDependOnWhoIsAsked(t *testing.T) {
	for address, want := range map[string]string{
		"h:1": "h true", "h": "h false", "[fd00::1]:2": "fd00::1 true", "fd00::1": "fd00::1 false", ":1": ":1 false", "h:": "h: false", "": " false",
	} {
		if got := fmt.Sprintf("%s %t", hostOf(address), hasPort(address)); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
