package tensorflow_test

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// python2 begins as scripts for Slider's docker do; what it says, and how, is another Python's.
const python2 = `from resource_management import *
class Tensorflow(Script):
  def start(self, env):
    try:
      print "docker run ..."
    except Exception, e:
      raise e
`

// The package with the published spelling and a script of its own, as an archive, by the built-in command: what each
// instance would be told, and what it is told when one agent for each instance forms the gang on a real Consul.
func TestPublishedPackage(t *testing.T) {
	python3(t)
	const app = "published"
	counts := "ps=1,chiefworker=1,worker=1,tensorboard=0"
	folder := copied(t, publishedFolder)
	scripts := filepath.Join(folder, "package", "scripts")
	if err := os.Mkdir(scripts, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(scripts, "tensorflow.py"), []byte(python2), 0o644); err != nil {
		t.Fatal(err)
	}
	archive := zipped(t, folder)
	h := commandline.NewHost(t, muster)

	t.Run("plan", func(t *testing.T) {
		for _, tt := range []struct{ component, job, task string }{
			{"ps", "ps", "0"}, {"chiefworker", "worker", "0"}, {"worker", "worker", "1"},
		} {
			plan := commandline.Parse[struct {
				Start struct{ Argv []string }
			}](t, h.Do("plan", archive, "--set", "global:muster.start=builtin", "--instances", counts, "--app-id", app, "--component", tt.component, "--roster", "example"))
			entry := "${WORK}/" + tt.component + "-0/app/install"
			want := []string{"python3", entry + "/ymnist.py"}
			want = append(want, arguments{
				ps: "host-0.example:20000", workers: "host-1.example:20000,host-2.example:20000",
				job: tt.job, task: tt.task, checkpoints: checkpointsOf(t, app), work: entry,
			}.list()...)
			if diff := cmp.Diff(want, plan.Start.Argv); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.component, diff)
			}
		}
	})

	t.Run("one agent each", func(t *testing.T) {
		consul := consulserver.Start(t, consulserver.Options{})
		h := commandline.NewHost(t, muster)
		root := commandline.WorkFolder(t) // a folder for each agent, as containers have them
		agents := map[string]*commandline.Command{}
		for _, component := range []string{"worker", "chiefworker", "ps"} {
			agents[component] = h.Start("agent", "--app", archive, "--set", "global:muster.start=builtin", "--instances", counts, "--app-id", app,
				"--component", component, "--index", "0", "--registry", consul.URL(), "--launcher", "shell",
				"--work-dir", filepath.Join(root, component))
		}
		for _, agent := range agents {
			agent.Succeed()
		}
		r := h.Status(consul.URL(), app)
		address := func(c string) string { return r.Of(t, c+"-0").Exports[c+".host_port"] }
		for component, a := range map[string]arguments{
			"ps": {job: "ps", task: "0"}, "chiefworker": {job: "worker", task: "0"}, "worker": {job: "worker", task: "1"},
		} {
			work := filepath.Join(root, component)
			a.ps, a.workers = address("ps"), address("chiefworker")+","+address("worker")
			a.checkpoints, a.work = checkpointsOf(t, app), filepath.Join(work, component+"-0", "app", "install")
			told := commandline.Report{LogDir: filepath.Join(work, "log")}.Printed(t, component+"-0")
			if diff := cmp.Diff(a.list(), commandline.Parse[[]string](t, []byte(told))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", component, diff)
			}
		}
		if r.Outcome != "succeeded" {
			t.Errorf("got outcome %q, want succeeded", r.Outcome)
		}
	})
}

// arguments are what the built-in command gives a script.
type arguments struct{ ps, workers, job, task, checkpoints, work, data string }

func (a arguments) list() []string {
	list := []string{
		"--ps_hosts=" + a.ps, "--worker_hosts=" + a.workers, "--job_name=" + a.job, "--task_index=" + a.task,
		"--ckp_dir=" + a.checkpoints, "--work_dir=" + a.work,
	}
	if a.data != "" {
		list = append(list, "--data_dir="+a.data)
	}
	return list
}

// checkpointsOf is the published package's folder of checkpoints, below its prefix.
func checkpointsOf(t *testing.T, app string) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return "hdfs://hdpdev/user/" + u.Username + "/.slider/cluster/" + app + "/checkpoints"
}

// The seed's command line: a folder, its template and its resources, 2 ps and 5 workers.
func TestSeedPackage(t *testing.T) {
	python3(t)
	h := commandline.NewHost(t, muster)
	r := h.Run(seedFolder, "--template", seedFolder+"/appConfig-default.json", "--resources", seedFolder+"/resources.default.json",
		"--instances", "tensorboard=0") // which needs TensorFlow
	if len(r.Instances) != 7 {
		t.Fatalf("got %d instances, want 7", len(r.Instances))
	}
	for _, in := range r.Instances {
		told := strings.Join(commandline.Parse[[]string](t, []byte(r.Printed(t, in.Instance))), " ")
		component, index, _ := strings.Cut(in.Instance, "-")
		want := regexp.MustCompile(`^--ps_hosts=([^, ]+,){1}[^, ]+ --worker_hosts=([^, ]+,){4}[^, ]+ --job_name=` + component +
			` --task_index=` + index + ` --ckp_dir=hdfs://hdpalt/user/\w+/\.slider/cluster --work_dir=/.*/` + in.Instance +
			`/app/install --data_dir=hdfs://hdpalt/user/danrtsey\.wy/mnist-data$`)
		if !want.MatchString(told) {
			t.Errorf("%s: got %s, want %s", in.Instance, told, want)
		}
	}
}

// A script of the user's own need not be in a package when every host has it: its absolute path.
func TestScriptByAbsolutePath(t *testing.T) {
	python3(t)
	h := commandline.NewHost(t, muster)
	dir := folder.OfAll(t, t.TempDir())
	script, err := filepath.Abs(publishedFolder + "/package/files/ymnist.py")
	if err != nil {
		t.Fatal(err)
	}
	r := h.Run("catalog:tensorflow", "--instances", "ps=1,worker=2,tensorboard=0",
		"--set", "site.global.user.scripts.entry="+script,
		"--set", "site.global.user.data.dir=/data", "--set", "site.global.user.checkpoint.dir="+dir,
		"--engine", "cgroup") // a container has no folder that its host has not
	var workers []string
	for _, m := range members(r, "worker") {
		workers = append(workers, m.address)
	}
	for i, m := range members(r, "worker") {
		var got []string
		if err := json.Unmarshal([]byte(r.Printed(t, m.name)), &got); err != nil {
			t.Fatal(err)
		}
		want := arguments{
			ps: members(r, "ps")[0].address, workers: strings.Join(workers, ","), job: "worker", task: strconv.Itoa(i),
			checkpoints: dir, work: filepath.Join(filepath.Dir(r.LogDir), m.name, "app", "install"), data: "/data",
		}.list()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.name, diff)
		}
	}
}

// The catalog's package by the built-in command, on a data folder and a checkpoint folder of the user's, in a
// company whose proxy leads nowhere near the gang.
func TestDigits(t *testing.T) {
	python := tensorflowPython(t)
	h := commandline.NewHost(t, muster)
	h.Env = append(h.Env, "http_proxy=http://127.0.0.1:9", "no_proxy=elsewhere.example")
	dir := folder.OfAll(t, t.TempDir())
	r := h.Run("catalog:tensorflow", "--instances", "ps=1,worker=2,tensorboard=0", "--set", "global:muster.python="+python,
		"--set", "site.global.user.data.dir="+copiedDigits(t), "--set", "site.global.user.checkpoint.dir="+dir,
		"--set", "muster.env.TRAIN_STEPS=1000", "--set", "muster.env.TRAIN_PACE=0.002")
	accuracy := regexp.MustCompile(`(?m)^accuracy (0\.\d+)$`).FindStringSubmatch(r.Printed(t, "worker-0"))
	if accuracy == nil {
		t.Fatalf("worker-0 tells no accuracy:\n%s", r.Printed(t, "worker-0"))
	}
	if a, err := strconv.ParseFloat(accuracy[1], 64); err != nil || a < 0.9 {
		t.Errorf("got accuracy %s, want 0.9 or more", accuracy[1])
	}
	saved, err := filepath.Glob(filepath.Join(dir, "model.ckpt-*.index"))
	if err != nil || len(saved) == 0 {
		t.Errorf("no checkpoint in the folder that was named: %v", err)
	}
	for _, in := range r.Instances {
		checkSaved(t, in, 1000)
	}
}
