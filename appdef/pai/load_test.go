package pai_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
)

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		`{"jobName": "j"}`: true,
		"\xef\xbb\xbf // PAI\n/* {} */ {\"taskRoles\":": true,
		`{"image": {"jobName": 1}, "taskRoles" : [`:     true,
		`{"a": "\"jobName\": 1", broken "taskRoles": 1`: true,
		`{"application": {"jobName": "j"}}`:             false,
		`{"a": "jobName"}`:                              false,
		`{"a": "x\\", "b": [":", {"jobName": 1}]}`:      false,
		`["jobName", {"taskRoles": 1}]`:                 false,
		`jobName: j`:                                    false,
		"":                                              false,
		"<xml/>":                                        false,
		"protocolVersion: 2\nname: j\n":                 true,
		"  protocolVersion: 2\n":                        false,
		`{"protocolVersion": 2, "taskRoles": {}}`:       true,
	} {
		if got := pai.Is([]byte(text)); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
	for name, data := range samples(t) {
		if !pai.Is(data) {
			t.Errorf("%s is none", name)
		}
	}
}

// job makes a job file of a role's and the job's own fields.
func job(role, fields string) []byte {
	return fmt.Appendf(nil, `{"jobName": "j", "image": "busybox", %s "taskRoles": [{"name": "worker", "taskNumber": 3, %s "command": "true"}]}`, fields, role)
}

// What a file shows tells its version, and why; what is said wins, and then there is nothing to tell.
func TestVersion(t *testing.T) {
	for _, tt := range []struct{ role, fields, option, want, why string }{
		{"", "", "", "0.14", "nothing in it is of one version alone"},
		{"", `"killAllOnCompletedTaskNumber": 1,`, "", "0.5", "it has killAllOnCompletedTaskNumber, which later versions ignore"},
		{`"shmMB": 64,`, "", "", "0.14", "it has shmMB, which 0.5 does not know"},
		{`"minFailedTaskCount": null,`, "", "", "0.14", "it has minFailedTaskCount, which 0.5 does not know"},
		{`"minSucceededTaskCount": 1,`, "", "", "0.14", "it has minSucceededTaskCount, which 0.5 does not know"},
		{`"storageGB": 1,`, "", "", "0.14", "it has storageGB, which 0.5 does not know"},
		{"", `"jobEnvs": {},`, "", "0.14", "it has jobEnvs, which 0.5 does not know"},
		{"", `"extras": {}, "killAllOnCompletedTaskNumber": 2,`, "", "0.14", "it has extras, which 0.5 does not know"},
		{"", `"dataDir": "$QIZHI_DEFAULT_FS_URI/d",`, "", "0.5", "it uses QIZHI_DEFAULT_FS_URI, a name that later versions do not have"},
		{"", `"dataDir": "$PAI_DEFAULT_FS_URI/d",`, "", "0.14", "nothing in it is of one version alone"},
		{
			"", `"taskRoles": [{"name": "w", "command": "echo ${PAI_HOST_IP_w_0} $QIZHI_JOB_NAME"}], "killAllOnCompletedTaskNumber": 2,`, "", "0.14",
			"it uses PAI_HOST_IP_w_0, a variable that 0.5 does not have",
		},
		{
			"", `"taskRoles": [{"name": "w", "command": "echo $PAI_TASK_ROLE_0_HOST_LIST"}],`, "", "0.5",
			"it uses PAI_TASK_ROLE_0_HOST_LIST, a name that later versions do not have",
		},
		{"", `"taskRoles": [{"name": "g2p-train", "command": "c"}],`, "", "0.5", "a task role has -, which later versions refuse"},
		{"", `"extras": {"muster.pai.version": 1},`, "", "1", ""},
		{"", `"extras": {"muster.pai.version": "0.5"},`, "", "0.5", ""},
		{"", `"extras": {"muster.pai.version": "0.5"},`, "1", "1", ""},
		{`"shmMB": 64,`, "", "0.5", "0.5", ""},
	} {
		data := job(tt.role, tt.fields)
		if strings.Contains(tt.fields, "taskRoles") {
			data = []byte(`{"jobName": "j", "image": "busybox", ` + strings.TrimSuffix(tt.fields, ",") + `}`)
		}
		got := load(t, data, pai.Options{Version: tt.option}).Settings.PAI
		if got.Version != tt.want || got.VersionWhy != tt.why {
			t.Errorf("%s %s %s: got %s (%s), want %s (%s)", tt.role, tt.fields, tt.option, got.Version, got.VersionWhy, tt.want, tt.why)
		}
	}
	if got := load(t, []byte(`{"jobName": "u~j", "image": "i", "taskRoles": [{"name": "w", "command": "c"}]}`), pai.Options{}).Settings.PAI; got.Version != "0.5" {
		t.Errorf("a name with ~: %s (%s)", got.Version, got.VersionWhy)
	}
}

// A job that each version would end at another time, and that shows none, is warned about; --set decides the version as
// --pai-version does, with all that the version decides.
func TestUndecided(t *testing.T) {
	warned := func(data []byte, o pai.Options) string { return load(t, data, o).Warnings.Warnings().Error() }
	const want = "job.json#/taskRoles: got 3 tasks and nothing that tells the version of PAI, want --pai-version 0.5, 0.14 or 1; " +
		"it is read as 0.14: the job succeeds when all tasks have; under 0.5 the first task that succeeds ends the others"
	if got := warned(job("", ""), pai.Options{}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	one := []byte(`{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "command": "c"}]}`)
	for _, quiet := range []string{
		warned(one, pai.Options{}), warned(job("", ""), pai.Options{Version: "0.14"}),
		warned(job("", `"killAllOnCompletedTaskNumber": 1,`), pai.Options{}),
	} {
		if quiet != "" {
			t.Errorf("a warning: %s", quiet)
		}
	}
	for _, set := range []string{"muster.pai.version=0.5", "global:muster.pai.version=0.5"} {
		app := load(t, job("", ""), pai.Options{Set: []string{set}})
		if app.Settings.PAI.Version != "0.5" || app.Settings.Total.MinSucceeded != 1 || len(app.Warnings) > 0 {
			t.Errorf("--set %s: version %s, ends with %d tasks, %v", set, app.Settings.PAI.Version, app.Settings.Total.MinSucceeded, app.Warnings)
		}
	}
}

func printed(n *int) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}

func TestCompletion(t *testing.T) {
	for _, tt := range []struct{ version, role, fields, want string }{ // min failed, min succeeded, total, retry
		{"0.5", "", "", "1 null 1 0"},
		{"0.5", "", `"killAllOnCompletedTaskNumber": "2", "retryCount": -2,`, "1 null 2 -2"},
		{"0.5", "", `"killAllOnCompletedTaskNumber": 0,`, "null null 0 0"},
		{"0.5", "", `"killAllOnCompletedTaskNumber": 2.0, "retryCount": 1e2,`, "1 null 2 100"}, // whole, too
		{"0.5", `"minFailedTaskCount": 2,`, "", "1 null 1 0"},
		{"0.14", "", "", "1 null 0 0"},
		{"0.14", `"minFailedTaskCount": null, "minSucceededTaskCount": null,`, `"retryCount": "4",`, "null null 0 4"},
		{"0.14", `"minFailedTaskCount": 2, "minSucceededTaskCount": "3",`, `"killAllOnCompletedTaskNumber": 2,`, "2 3 0 0"},
		{"1", "", "", "1 3 0 0"},
		{"1", `"minFailedTaskCount": null, "minSucceededTaskCount": null,`, "", "1 3 0 0"},
		{"1", `"minFailedTaskCount": 3, "minSucceededTaskCount": 1,`, `"killAllOnCompletedTaskNumber": 2,`, "3 1 0 0"},
	} {
		app := load(t, job(tt.role, tt.fields), pai.Options{Version: tt.version})
		c := app.Components[0].Settings.Complete
		got := fmt.Sprintf("%s %s %d %d", printed(c.MinFailed), printed(c.MinSucceeded), app.Settings.Total.MinSucceeded, app.Settings.Retry)
		if got != tt.want {
			t.Errorf("%s %s %s: got %s, want %s", tt.version, tt.role, tt.fields, got, tt.want)
		}
	}
}

func TestDirs(t *testing.T) {
	for in, want := range map[string]string{
		"$PAI_DEFAULT_FS_URI/d/$PAI_JOB_NAME":                  "${NN_URI}/d/j",
		"$QIZHI_DEFAULT_FS_URI/$QIZHI_USER_NAME":               "${NN_URI}/${USER}",
		"/a/$PAI_USERNAME/$PAI_USER_NAME.x":                    "/a/${USER}/${USER}.x",
		"/a/$PAI_JOB_NAMEx/$PAI_JOB_NAME_1/$PAI_DATA_DIR":      "/a/$PAI_JOB_NAMEx/$PAI_JOB_NAME_1/$PAI_DATA_DIR",
		"/a/${PAI_JOB_NAME}x/${QIZHI_USER_NAME}":               "/a/jx/${USER}",
		"$PAI_DEFAULT_FS_URI/$PAI_DEFAULT_FS_URI$PAI_JOB_NAME": "${NN_URI}/${NN_URI}j",
	} {
		app := load(t, job("", fmt.Sprintf(`"dataDir": %q, "outputDir": %q, "codeDir": %q, "authFile": %q,`, in, in, in, in)), pai.Options{})
		p := app.Settings.PAI
		if p.DataDir != want || p.OutputDir != want || p.CodeDir != want || app.Components[0].Limits.ImageAuth != "file:"+want {
			t.Errorf("%s: got %+v and %s, want %s", in, p, app.Components[0].Limits.ImageAuth, want)
		}
	}
	if got := load(t, job("", ""), pai.Options{}).Settings.PAI.OutputDir; got != "${NN_URI}/Output/j" {
		t.Errorf("the default output folder is %s", got)
	}
	if got := load(t, job("", `"outputDir": "",`), pai.Options{OutputUser: true}).Settings.PAI.OutputDir; got != "${NN_URI}/Output/${USER}/j" {
		t.Errorf("the default output folder of a user is %s", got)
	}
	if got := load(t, job("", `"authFile": "file:///etc/login",`), pai.Options{}).Components[0].Limits.ImageAuth; got != "file:/etc/login" {
		t.Errorf("credentials are at %s", got)
	}
}

func TestPorts(t *testing.T) {
	app := load(t, job(`"portList": [{"label": "tf", "beginAt": 5000, "portNumber": "2"}, {"label": "http", "portNumber": 3}, {"label": "x.y"}],`, ""), pai.Options{Version: "0.14"})
	c := app.Components[0]
	got := map[string]string{}
	for key, value := range c.Config {
		if strings.HasPrefix(key, "site.") {
			got[key] = strings.ReplaceAll(value, "${worker.ALLOCATED_PORT}", "@")
		}
	}
	want := map[string]string{
		"site.port.http": "@{PER_CONTAINER}", "site.port.http-2": "@{PER_CONTAINER}", "site.port.http-3": "@{PER_CONTAINER}",
		"site.port.ssh": "@{PER_CONTAINER}", "site.port.x.y": "@{PER_CONTAINER}", "site.port.tf": "@{DEFAULT_5000}{PER_CONTAINER},@{DEFAULT_5001}{PER_CONTAINER}",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
	if !c.Settings.PortsExact || c.Settings.ClusterExport.String() != "worker-host_port" {
		t.Errorf("exact: %t, address: %s", c.Settings.PortsExact, c.Settings.ClusterExport)
	}
	if len(app.Warnings) > 0 {
		t.Error(app.Warnings)
	}
	if load(t, job("", ""), pai.Options{}).Components[0].Settings.PortsExact {
		t.Error("ports that were not asked for are exact")
	}
}

// Roles may have names that no export group may have, or that differ in letter case alone; each has its address.
func TestRoleNames(t *testing.T) {
	data := []byte(`{"jobName": "mpi", "image": "i", "taskRoles": [{"name": "a.b", "command": "c"}, {"name": "A_B", "command": "c"}, {"name": "x~-y", "command": "c"}, {"name": "ps", "command": "c"}]}`)
	app := load(t, data, pai.Options{})
	groups := map[string]bool{}
	for _, c := range app.Components {
		export, ok := app.Export(c.Settings.ClusterExport)
		if !ok || export.Value != "${"+c.Name+"_HOST}:${site.port.http}" || c.Settings.Role != appdef.RoleWorker {
			t.Errorf("%s: address %q, role %s", c.Name, export.Value, c.Settings.Role)
		}
		groups[strings.ToLower(c.Settings.ClusterExport.Group)] = true
	}
	if len(groups) != 4 || app.Settings.Framework != "none" {
		t.Errorf("groups %v, framework %s", groups, app.Settings.Framework)
	}
}

func TestEnvironment(t *testing.T) {
	app := load(t, job("", `"jobEnvs": {"A": 1.50, "B": true, "C": "$X ${Y}", "D": null, "isDebug": true, "debuggingReservationSeconds": "60"},`), pai.Options{})
	c := app.Components[0]
	if diff := cmp.Diff(c.Settings.Env, map[string]string{"A": "1.50", "B": "true", "C": "$X ${Y}", "D": ""}); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
	if !app.Settings.PAI.Debug || c.Settings.Hold != 60 {
		t.Errorf("debug %t, hold %v", app.Settings.PAI.Debug, c.Settings.Hold)
	}
	app = load(t, job("", `"jobEnvs": {"isDebug": true},`), pai.Options{})
	if app.Components[0].Settings.Hold != 604800 {
		t.Errorf("hold %v, want a week", app.Components[0].Settings.Hold)
	}
	app = load(t, job("", `"jobEnvs": {"isDebug": "true", "debuggingReservationSeconds": 5},`), pai.Options{})
	if env := app.Components[0].Settings.Env; app.Settings.PAI.Debug || app.Components[0].Settings.Hold != 0 || env["isDebug"] != "true" || env["debuggingReservationSeconds"] != "5" {
		t.Errorf("a text counts: debug %t, variables %v", app.Settings.PAI.Debug, env)
	}
}

func TestExtras(t *testing.T) {
	app := load(t, job(`"shmMB": 32,`, `"retryCount": 1, "extras": {"muster.retry": 2, "muster.restart": "gang", "worker:muster.shm": "40", "muster.image": "other",
		"worker:muster.complete.minFailed": null, "muster.ulimit.nofile": 100, "plugin": [1], "a/b": "x"},`), pai.Options{})
	c := app.Components[0]
	if app.Settings.Retry != 2 || c.Settings.Restart.Scope != appdef.ScopeGang || c.Limits.ShmMB != 40 || c.Limits.Image != "other" ||
		c.Settings.Complete.MinFailed != nil || c.Limits.Ulimits["nofile"] != "100" {
		t.Errorf("retry %d, limits %+v, settings %+v", app.Settings.Retry, c.Limits, c.Settings)
	}
	if got, want := slices.Sorted(maps.Keys(app.Kept)), []string{"job#/extras/a~1b", "job#/extras/plugin"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	if got := load(t, job("", ""), pai.Options{}).Components[0].Settings.Restart.Scope; got != appdef.ScopeNever {
		t.Errorf("without a word for it %s restarts", got)
	}
}

// The command comes as it is written, with all that looks like a placeholder.
func TestCommand(t *testing.T) {
	const command = "cd code\n\tpython x.py --hosts=${worker_HOST} --dir $PAI_WORK_DIR/${USER} '{{checkpoint}}' \"$@\" \\"
	data := fmt.Appendf(nil, `{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "command": %q}]}`, command)
	if got := load(t, data, pai.Options{}).Components[0].Settings.Command; got != command {
		t.Errorf("got %q, want %q", got, command)
	}
}

func TestOptions(t *testing.T) {
	app := load(t, job("", ""), pai.Options{Instances: []string{"worker=5"}, Set: []string{"yarn.memory=300", "worker:muster.restart=gang", "NN_URI=file:///data"}})
	c := app.Components[0]
	if c.Instances != 5 || c.Limits.MemoryMB != 300 || c.Settings.Restart.Scope != appdef.ScopeGang || app.Vars["NN_URI"] != "file:///data" {
		t.Errorf("got %d instances, %d MB, restart %s, %v", c.Instances, c.Limits.MemoryMB, c.Settings.Restart.Scope, app.Vars)
	}
	one, two := load(t, job("", ""), pai.Options{Version: appdef.PAI1}), load(t, job("", ""), pai.Options{Version: appdef.PAI1, Instances: []string{"worker=5"}})
	if appdef.Digest(one) != appdef.Digest(two) {
		t.Error("the digest depends on the counts")
	}
}

func TestOpenNotebook(t *testing.T) {
	for command, want := range map[string]bool{
		`jupyter notebook --NotebookApp.token=\"\" --x`: true, `jupyter lab --ServerApp.token=''`: true, `jupyter lab --IdentityProvider.token= --x`: true,
		`jupyter notebook --NotebookApp.token=$T`: false, `jupyter notebook --NotebookApp.token="x"`: false, "jupyter notebook": false,
	} {
		data := fmt.Appendf(nil, `{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "command": %q}]}`, command)
		warned := slices.ContainsFunc(load(t, data, pai.Options{}).Warnings, func(p appdef.Problem) bool { return p.Pointer == "/taskRoles/0/command" })
		if warned != want {
			t.Errorf("%s: warned %t, want %t", command, warned, want)
		}
	}
}
