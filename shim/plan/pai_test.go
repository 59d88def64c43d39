package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/shim/frameworks"
	"github.com/muster-agent/muster/shim/plan"
)

// paiRequest is an allocation on a host that has an engine for images, and a file system.
func paiRequest(component string, index int) plan.Request {
	req := goldenRequest(component, index)
	req.Engine = plan.EngineChoice{Name: "container", Why: "this host can"}
	req.Allocation.Vars = map[string]string{"NN_URI": "hdfs://nn:9000"}
	return req
}

func loadJob(t *testing.T, data []byte, options pai.Options) appdef.App {
	t.Helper()
	app, found := pai.Load(data, options)
	if bad := found.Errors(); len(bad) > 0 {
		t.Fatal(bad)
	}
	return app
}

func paiStarted(t *testing.T, app appdef.App, req plan.Request) plan.Plan {
	t.Helper()
	p, problems := plan.Build(app, req)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	start, problems := plan.Finish(p, plan.ExampleRoster(app, req), plan.StartFacts{Generation: 1, Attempt: 1}, frameworks.Env)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p.Start = &start
	return p
}

// The job files of the manuals, planned for the first task of each role.
func TestGoldenPAIPlans(t *testing.T) {
	files, err := filepath.Glob("../../tests/jobs/pai/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("jobs: %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		app := loadJob(t, data, pai.Options{Name: filepath.Base(file)})
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		for _, c := range app.Components {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				compare(t, filepath.Join("testdata", "pai", name, c.Name+"-0.json"), paiStarted(t, app, paiRequest(c.Name, 0)).JSON())
			})
		}
	}
}

// A command and the job's variables reach the shell as they were written, whatever in them looks like a placeholder of ours.
// The image's entrypoint does not precede it: PAI clears that.
func TestPAICommandsAreLiteral(t *testing.T) {
	const command = "echo ${worker_HOST} ${USER} ${WORK} ${LOG}/x ${JAVA_HOME} {{checkpoint}} {{port.port.http}} ${PAI_X:-y} $1"
	data := fmt.Appendf(nil, `{"jobName": "j", "image": "i", "taskRoles": [{"name": "worker", "taskNumber": 2, "command": %q}], "jobEnvs": {"A": %q, "PAI_JOB_NAME": "other"}}`, command, command)
	app := loadJob(t, data, pai.Options{})
	req := paiRequest("worker", 1)
	req.Image = &plan.ImageFacts{Entrypoint: []string{"/init", "${USER}"}, Bash: true}
	p, problems := plan.Build(app, req)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p = plan.Resolve(p, plan.Dirs{Work: "/w", Log: "/l"})
	start, problems := plan.Finish(p, plan.ExampleRoster(app, req), plan.StartFacts{Generation: 1, Attempt: 1, Checkpoint: "c"}, frameworks.Env)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if want := []string{"bash", "-c", command}; !slices.Equal(start.Argv, want) {
		t.Errorf("got %q, want %q", start.Argv, want)
	}
	for name, want := range map[string]string{"A": command, "PAI_JOB_NAME": "other", "QIZHI_JOB_NAME": "j", "PAI_WORK_DIR": "/w/worker-1"} {
		if start.Env[name] != want {
			t.Errorf("%s is %q, want %q", name, start.Env[name], want)
		}
	}
}

// A package that was made of a job keeps its dialect: its commands are literal too, and the resume arguments are still ours.
func TestPAIResumeArgs(t *testing.T) {
	data := []byte(`{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "command": "run ${USER}"}], "extras": {"muster.resume.args": "--from {{checkpoint}}"}}`)
	app := loadJob(t, data, pai.Options{})
	p, problems := plan.Build(app, paiRequest("w", 0))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	start, _ := plan.Finish(p, plan.ExampleRoster(app, paiRequest("w", 0)), plan.StartFacts{Checkpoint: "/c/7"}, frameworks.Env)
	if got, want := start.Argv[2], "run ${USER} --from /c/7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPAIPorts(t *testing.T) {
	data := []byte(`{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "taskNumber": 2, "command": "c", "portList": [
		{"label": "z", "beginAt": 5000, "portNumber": 2}, {"label": "http", "portNumber": 11}, {"label": "a", "portNumber": 11}, {"label": "a.b"}]}]}`)
	p, problems := plan.Build(loadJob(t, data, pai.Options{}), paiRequest("w", 0))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	names := func(first, further string) []string {
		all := []string{first}
		for i := 2; i <= 11; i++ {
			all = append(all, fmt.Sprint(further, i))
		}
		return all
	}
	want := []plan.PAIPort{
		{Label: "z", Names: []string{"port.z", "port.z.2"}},
		{Label: "a", Names: names("port.a", "port.a.")},
		{Label: "a.b", Names: []string{"port.a.b"}},
		{Label: "http", Names: names("port.http", "port.http-")},
		{Label: "ssh", Names: []string{"port.ssh"}},
	}
	if diff := cmp.Diff(p.PAI.Roles[0].Ports, want); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
	for _, port := range p.Ports {
		if fixed := strings.HasPrefix(port.Name, "port.z"); port.Exact != fixed || (port.Want > 0) != fixed {
			t.Errorf("%+v", port)
		}
	}
	if p.Ports[0].Name != "port.http" {
		t.Errorf("MUSTER_PORT is %s, want http's first", p.Ports[0].Name)
	}
}

// The default output folder is nothing to warn of; one that is written and cannot be filled in is.
func TestPAIDirs(t *testing.T) {
	for fields, want := range map[string]string{
		"":                                       " []",
		`"dataDir": "$PAI_DEFAULT_FS_URI/d",`:    "/d [/dataDir]",
		`"dataDir": "file:///d/$PAI_USER_NAME",`: "file:///d/ada []",
		`"outputDir": "$PAI_DEFAULT_FS_URI/out",`:  " [/outputDir]",
		`"codeDir": "$QIZHI_DEFAULT_FS_URI/c/$y",`: " [/codeDir]",
	} {
		data := fmt.Appendf(nil, `{"jobName": "j", "image": "i", %s "taskRoles": [{"name": "w", "command": "c"}]}`, fields)
		p, problems := plan.Build(loadJob(t, data, pai.Options{}), func() plan.Request {
			req := paiRequest("w", 0)
			req.Allocation.Vars = nil
			return req
		}())
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		at := []string{}
		for _, w := range p.Warnings {
			at = append(at, w.Pointer)
		}
		if got := fmt.Sprint(p.PAI.DataDir, " ", at); got != want {
			t.Errorf("%s: got %s, want %s", fields, got, want)
		}
	}
}

// The services of an App with PAI's variables are no task roles, and without a version there is nothing of PAI.
func TestPAIOfOtherDialects(t *testing.T) {
	app := loadJob(t, []byte(`{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "command": "c"}, {"name": "board", "command": "c"}], "extras": {"board:muster.role": "service"}}`), pai.Options{})
	p, problems := plan.Build(app, paiRequest("board", 0))
	if len(problems) > 0 || len(p.PAI.Roles) != 1 {
		t.Errorf("roles %+v, problems %v", p.PAI, problems)
	}
	app.Settings.PAI.Version = ""
	if p, _ := plan.Build(app, paiRequest("w", 0)); p.PAI != nil {
		t.Errorf("got %+v, want nothing", p.PAI)
	}
}
