package confine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/status"
)

// plan is what `muster plan` prints of the first worker.
func (j *job) plan(args ...string) plan.Plan {
	j.t.Helper()
	out, said, code := j.verb(append([]string{"plan", j.dir, "--component", "worker"}, args...)...)
	if code != 0 {
		j.t.Fatalf("plan ended with %d: %s", code, said)
	}
	var p plan.Plan
	j.must(json.Unmarshal([]byte(out), &p))
	return p
}

// instanceFile is what the agent of the first worker leaves for the next one, should it be killed.
func (j *job) instanceFile() string { return filepath.Join(j.state, "apps", j.app, "worker-0.json") }

func (j *job) remains() status.InstanceFile {
	j.t.Helper()
	var f status.InstanceFile
	j.must(status.ReadJSON(j.instanceFile(), &f))
	return f
}

// cgroups are those of the first worker, while it lives.
func (j *job) cgroups() []string {
	j.t.Helper()
	return j.remains().Cgroups
}

// processes are those whose environment says that they belong to this job, whoever their parent is.
func (j *job) processes() []int {
	j.t.Helper()
	var found []int
	for _, file := range glob(j.t, "/proc/[0-9]*/environ") {
		if !slices.Contains(strings.Split(read(file), "\x00"), "MUSTER_APP_ID="+j.app) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		j.must(err)
		found = append(found, pid)
	}
	return found
}

// mounts are this host's mounts below the job's folders.
func (j *job) mounts() []string {
	var found []string
	for line := range strings.Lines(read("/proc/self/mountinfo")) {
		if strings.Contains(line, filepath.Dir(j.work)) {
			found = append(found, line)
		}
	}
	return found
}

// nothingLeft asserts that neither process, cgroup, mount nor folder of a container is there.
func (j *job) nothingLeft(was status.InstanceFile) {
	j.t.Helper()
	if left := j.processes(); len(left) > 0 {
		j.t.Errorf("processes %v are left", left)
	}
	gone := append(slices.Clone(was.Cgroups), was.Dirs...)
	for _, dir := range was.Cgroups {
		gone = append(gone, filepath.Dir(dir)) // the app's, of which this was the last instance
	}
	for _, dir := range gone {
		if !absent(dir) {
			j.t.Errorf("%s is left", dir)
		}
	}
	if left := glob(j.t, filepath.Join(j.work, "root", "*")); len(left) > 0 {
		j.t.Errorf("folders of containers are left: %v", left)
	}
	if left := j.mounts(); len(left) > 0 {
		j.t.Errorf("mounts are left: %v", left)
	}
	if len(was.Cgroups) > 0 && !absent(j.instanceFile()) {
		j.t.Errorf("%s is left", j.instanceFile())
	}
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// deafTree: nothing of a tree that nobody can talk to outlives `muster stop`.
func deafTree(t *testing.T, engine string) {
	const size = 50
	j := newJob(t, program("tree", strconv.Itoa(size)), settings{"muster.stop.grace": "1"})
	p := j.begin("--engine", engine)
	j.says("ready")
	was := j.remains()
	if engine == "container" {
		if mounts := j.mounts(); len(mounts) > 0 {
			t.Errorf("while it runs the host has the mounts %v, want none", mounts)
		}
	}
	if n := len(j.processes()); n < size {
		t.Errorf("%d processes, want %d", n, size)
	}
	if _, said, code := j.verb("stop", j.app); code != 0 {
		t.Errorf("muster stop: %d: %s", code, said)
	}
	if e := j.end(p); e.Outcome != "stopped" || e.code != 0 {
		t.Errorf("%s, exit code %d, want stopped, 0", e.Outcome, e.code)
	}
	j.nothingLeft(was)
}

// interrupted: Ctrl-C ends all that `muster run` has started.
func interrupted(t *testing.T, engine string) {
	j := newJob(t, program("tree", "10"), settings{"muster.stop.grace": "0.2"})
	p := j.begin("--engine", engine)
	j.says("ready")
	was := j.remains()
	j.must(p.Signal(syscall.SIGINT))
	if e := j.end(p); e.Outcome != "stopped" || e.code != 130 {
		t.Errorf("%s, exit code %d, want stopped, 130", e.Outcome, e.code)
	}
	j.nothingLeft(was)
}

// runKilled: agents whose `muster run` was killed stop in grace, and leave nothing.
func runKilled(t *testing.T, engine string) {
	j := newJob(t, program("tree", "10"), settings{"muster.stop.grace": "0.2"})
	p := j.begin("--engine", engine)
	j.says("ready")
	was := j.remains()
	p.kill()
	await(t, "the end of the agent of a killed run", func() bool { return absent(fmt.Sprintf("/proc/%d", was.Pid)) })
	j.nothingLeft(was)
}

// agentKilled: the guard ends the processes of an agent that was killed; the next agent of this host clears the rest.
func agentKilled(t *testing.T, engine string) {
	const size = 20
	host := newRegistry(t)
	j := newJob(t, program("tree", strconv.Itoa(size)), nil)
	agent := func(j *job) *process { return host.agent(j, "--engine", engine) }
	killed := agent(j)
	j.says("ready")
	was := j.remains()
	killed.kill()
	await(t, "the end of the processes of a killed agent", func() bool { return len(j.processes()) == 0 })
	if absent(j.instanceFile()) {
		t.Fatal("the killed agent's file is gone with it")
	}
	next := newJob(t, "echo next", nil)
	if code := agent(next).wait(); code != 0 {
		t.Errorf("the next agent ended with %d, want 0", code)
	}
	j.nothingLeft(was)
	host.end()
	if engine != "process" && len(was.Cgroups) == 0 {
		t.Errorf("%s says nothing of cgroups", j.instanceFile())
	}
}

// registryApp is an app that does nothing but run: its registry is there for agents that are started one by one.
type registryApp struct {
	*job
	run *process
}

func newRegistry(t *testing.T) registryApp {
	t.Helper()
	j := newJob(t, "mkfifo hold; echo here; cat hold", nil)
	r := registryApp{j, j.begin("--engine", "process")}
	j.says("here")
	return r
}

// agent starts the agent of a job's first worker on the same host.
func (r registryApp) agent(j *job, args ...string) *process {
	r.t.Helper()
	j.state = r.state
	return j.start(append([]string{
		"agent", "--app", j.dir, "--app-id", j.app, "--component", "worker", "--index", "0", "--host", "127.0.0.1", "--work-dir", j.work,
		"--registry", "unix:" + filepath.Join(r.state, "apps", r.app, "registry.sock"),
	}, args...)...)
}

func (r registryApp) end() {
	r.t.Helper()
	r.release()
	if code := r.run.wait(); code != 0 {
		r.t.Errorf("the other app ended with %d, want 0", code)
	}
}
