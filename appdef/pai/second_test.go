package pai_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/appdef/slider"
)

func secondSample(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/second.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A job of the second protocol says the same as one of the first: components, limits, counts, images, ports.
func TestSecondProtocol(t *testing.T) {
	app := load(t, secondSample(t), pai.Options{Name: "job.yaml"})
	worker, ps := app.Component("worker"), app.Component("ps")
	ports := func(c *appdef.Component) (all []string) {
		for _, label := range []string{"http", "ssh", "tf"} {
			if value, ok := c.Config["site.port."+label]; ok {
				all = append(all, fmt.Sprint(label, strings.Count(value, "ALLOCATED_PORT")))
			}
		}
		return all
	}
	got := []any{
		app.Name, app.Release, app.Comment, app.Settings.PAI.Version, app.Settings.PAI.VersionWhy, app.Settings.PAI.VirtualCluster,
		app.Settings.Retry, app.Settings.Timeout, fmt.Sprint(app.Kept),
		worker.Instances, worker.Limits.VCores, worker.Limits.MemoryMB, worker.Limits.GPUs, worker.Limits.ShmMB, worker.Limits.Image,
		worker.Limits.ImageAuth, printed(worker.Settings.Complete.MinFailed), printed(worker.Settings.Complete.MinSucceeded), ports(worker),
		ps.Instances, ps.Limits.VCores, ps.Limits.MemoryMB, ps.Limits.GPUs, ps.Limits.ShmMB, ps.Limits.Image,
		ps.Limits.ImageAuth, printed(ps.Settings.Complete.MinFailed), printed(ps.Settings.Complete.MinSucceeded), ports(ps),
	}
	want := []any{
		"all-of_it", "1", "What it does.\n", "1", "", "vc1",
		2, app.Settings.Timeout, fmt.Sprint(app.Kept),
		3, 2, 2048, 1, 128, "example/train:1",
		"job:dockerimage/image", "2", "null",
		[]string{"http1", "ssh1", "tf2"},
		1, 1, 300, 0, 300, "",
		"", "null", "1",
		[]string{"http1", "ssh1"},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
	for name, want := range map[string]string{
		"worker": "set -o errexit -o nounset -o pipefail\neval '(\nset +o errexit +o nounset +o pipefail\necho code\n) || true\n(\nfirst\ncd code\n" +
			"train --rate=0.001 --epochs 1 16 dense https://example/b 5 hdfs://nn/model https://example/a,https://example/b ${x} {{y}}\n" +
			`login '\'''"$PAI_SECRET_tokens_0_"''\'' it'\''s` + "\nlast\n)\n(\nset +o errexit +o nounset +o pipefail\necho saved\n) || true'",
		"ps": "set -o errexit -o nounset -o pipefail\n(\nset +o nounset +o pipefail\nbefore\n)\n(\nserve\n)\n(\nset +o nounset +o pipefail\nafter\n)",
	} {
		if got := app.Component(name).Settings.Command; got != want {
			t.Errorf("%s runs\n%s\nwant\n%s", name, got, want)
		}
	}
	if len(app.Warnings) > 0 {
		t.Error(app.Warnings)
	}
}

// The values of secrets are in no text of the definition, and in no document that is made of it.
func TestSecondSecrets(t *testing.T) {
	app := load(t, secondSample(t), pai.Options{})
	want := map[string]string{
		"tokens[0]":         "abc'def",
		"dockerimage/image": `{"auths":{"registry.example":{"password":"pa55word","username":"me"}}}`,
	}
	if diff := cmp.Diff(app.JobSecrets, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
	if got := app.Component("worker").Settings.Secrets; !cmp.Equal(got, map[string]string{"PAI_SECRET_tokens_0_": "job:tokens[0]"}) {
		t.Errorf("the worker's secrets are %v", got)
	}
	if got := app.Component("ps").Settings.Secrets; len(got) > 0 {
		t.Errorf("ps gets %v", got)
	}
	job, _ := pai.Write(app)
	texts := whole(t, app) + string(job)
	documents, _ := slider.Write(app)
	for _, text := range documents {
		texts += string(text)
	}
	for _, secret := range []string{"abc'def", "pa55word"} {
		if strings.Contains(texts, secret) {
			t.Errorf("%s is in\n%s", secret, texts)
		}
	}
}

// What a job may say and mean nothing by is named, and what can only be a mistake is refused.
func TestSecondFields(t *testing.T) {
	for _, tt := range []struct{ role, fields, want string }{
		{"", "", ""},
		{"completion: {minFailedInstances: null, minSucceededInstances: 0}", "", ""},
		{"completion: {minFailedInstances: 4}", "", "minFailedInstances: got 4, want at most instances, 3; -1 is never"},
		{"completion: {minFailedInstances: -2}", "", `minFailedInstances: got "-2", want a whole number, -1 or more`},
		{"taskRetryCount: 2", "", "taskRetryCount: got 2, want gangAllocation: false in extras"},
		{"taskRetryCount: 2", "extras: {gangAllocation: false}", "gangAllocation: got gangAllocation: false"},
		{"extraContainerOptions: {infiniband: true}", "", "infiniband: got infiniband: true"},
		{"extraContainerOptions: {shmMB: 999}", "", "shmMB: got 999, want at most memoryMB, 256"},
		{"script: x", "", `script: got the unknown script "x", want the name of a prerequisite of type script`},
		{"prerequisites: [x]", "", `prerequisites: got the unknown prerequisite "x"`},
		{"data: 5", "", "data: got a number, want a text"},
		{"instance: 5", "", `got unknown key "instance", want a key that PAI knows; did you mean instances?`},
		{"", "extras: {hivedScheduler: {taskRoles: {}}}", "got the key hivedScheduler"},
		{"", "extras: {com.microsoft.pai.runtimeplugin: [{plugin: teamwise_storage, parameters: {}}]}", `plugin: got the plugin "teamwise_storage", want cmd or ssh; it is not run`},
		{"", "extras: {com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: {userssh: {type: custom, value: key}}}]}", "userssh: got a key of the user's, want muster ssh"},
		{"", "extras: {com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {callbacks: [{event: x}]}}]}", `event: got "x", want taskStarts or taskSucceeds`},
		{"", "extras: {muster.pai.version: 0.14}", `got "0.14", want 1; a job with protocolVersion is of PAI 1`},
		{"", "defaults: {deployment: d}", `deployment: got the unknown deployment "d"`},
		{"", "deployments: [{name: d, taskRoles: {}}, {name: d, taskRoles: {}}]", `name: got a second deployment "d"`},
		{"", "jobRetryCount: -1", `jobRetryCount: got "-1", want a whole number, 0 or more`},
	} {
		app, found := pai.Load(secondJob(tt.role, "echo", tt.fields), pai.Options{Name: "job.yaml"})
		if tt.want == "" && len(found) > 0 || !strings.Contains(found.Error(), tt.want) {
			t.Errorf("%s %s: got %v, want %s", tt.role, tt.fields, found, tt.want)
		}
		if strings.Contains(tt.fields, "gangAllocation") {
			c := app.Components[0].Settings
			if c.Restart.Scope != appdef.ScopeInstance || c.Restart.Budget != 2 || c.Env["GANG_ALLOCATION"] != "false" {
				t.Errorf("restarts %+v, variables %v", c.Restart, c.Env)
			}
		}
	}
}

// References are filled in; what stands for nothing is an error, and what is no reference of PAI's stays.
func TestSecondTemplates(t *testing.T) {
	const parameters = "parameters: {a: {b: [1, two, null]}, yes: true, none: null, 'x-y': z}"
	for command, want := range map[string]string{
		"<% $parameters.a.b[1] %> <%$parameters.yes%> <% $parameters.x-y %>": "two true z",
		"<% $parameters.a.b %>":    "1,two,",
		"<% x %> <%= 5 %> 5 <% 6":  "<% x %> <%= 5 %> 5 <% 6",
		"<% $parameters.a %>":      `got "<% $parameters.a %>", which stands for no text, want a value of parameters`,
		"<% $parameters.none %>":   `which stands for no text`,
		"<% $parameters %>":        `which stands for no text`,
		"<% $parameters.a.b[9] %>": `which stands for no text`,
		"<% $secrets.s %>":         `which stands for no text, want a value of secrets`,
		"<% $script.uri %>":        `which stands for no text, want a value of script`,
		"<% $parameter.a %>":       `want $parameters, $script, $output, $data or $secrets; it is left as it is`,
	} {
		app, found := pai.Load(secondJob("", command, parameters), pai.Options{})
		if strings.Contains(found.Error(), want) && len(found) > 0 {
			continue
		}
		if got := strings.TrimPrefix(app.Components[0].Settings.Command, "set -o errexit -o nounset -o pipefail\n"); got != want || len(found) > 0 {
			t.Errorf("%s: got %q, %v, want %q", command, got, found, want)
		}
	}
}

func secondJob(role, command, fields string) []byte {
	return fmt.Appendf(nil, `protocolVersion: 2
name: j
type: job
prerequisites: [{name: i, type: dockerimage, uri: busybox}]
%s
taskRoles:
  worker:
    instances: 3
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    commands: [%q]
    %s
`, fields, command, role)
}

// A job of the second protocol is written as one of the first that runs the same.
func TestSecondWritten(t *testing.T) {
	app := load(t, secondJob("", "echo <% $parameters.x %>", "parameters: {x: 5}"), pai.Options{})
	job, unsupported := pai.Write(app)
	again := load(t, job, pai.Options{})
	if len(unsupported) > 0 || again.Components[0].Settings.Command != app.Components[0].Settings.Command ||
		again.Components[0].Limits.Image != "busybox" || again.Settings.PAI.Version != appdef.PAI1 {
		t.Errorf("unsupported %q\n%s", unsupported, job)
	}
	_, unsupported = pai.Write(load(t, secondSample(t), pai.Options{}))
	want := []string{
		`the comment "What it does.\n"`, "the contributor: PAI's first protocol has none", `the version "1"`,
	}
	if diff := cmp.Diff(unsupported, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}
