// Package slurm_test gives a real Slurm the jobs that `muster render slurm` writes, and looks at what becomes of them: ranks,
// requeues, ends. Set MUSTER_BINARY to try a binary that is there already.
package slurm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/launchers/job"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/slurm"
)

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// cluster is one Slurm and one Consul for all jobs of a test.
type cluster struct {
	*slurm.Cluster
	t      *testing.T
	consul *consulserver.Server
	dir    string
}

func start(t *testing.T) cluster {
	t.Helper()
	server := slurm.Start(t, slurm.Options{})
	t.Cleanup(func() {
		if t.Failed() {
			found, _ := filepath.Glob(filepath.Join(server.Dir, "job-*.out")) // only a bad pattern is an error
			for _, path := range found {
				text, _ := os.ReadFile(path)
				t.Logf("the end of %s:\n%s", path, text[max(0, len(text)-3000):])
			}
		}
	})
	return cluster{server, t, consulserver.Start(t, consulserver.Options{}), folder.Temp(t, "ms-")}
}

func (c cluster) logs(app string) string { return filepath.Join(c.dir, app, "log", "*") }

func (c cluster) state() string { return filepath.Join(c.Dir, "s") }

// signal has the agents of instances send their processes a signal.
func (c cluster) signal(t *testing.T, app, signal string, instances ...string) {
	t.Helper()
	for _, instance := range instances {
		cmd := exec.CommandContext(t.Context(), muster, "signal", "--state-dir", c.state(), app+"/"+instance, signal)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
		}
	}
}

// TestRendered has one Slurm for all jobs.
func TestRendered(t *testing.T) {
	c := start(t)
	app := job.Saver(t, c.dir, 3, nil)
	limited := c.submit(t, "limited", "r", app, "--time-limit", "1m") // Slurm looks at its time while the others run
	t.Run("four tasks", func(t *testing.T) { c.fourTasks(t, app) })
	t.Run("nothing is tried again", func(t *testing.T) { c.notAgain(t, app) })
	t.Run("tried again as a new run", func(t *testing.T) { c.newRun(t, app) })
	t.Run("of different sizes", func(t *testing.T) { c.parts(t, app) })
	t.Run("the page", c.page)
	t.Run("its time is over", func(t *testing.T) { c.timeIsOver(t, limited) })
}

// submit gives Slurm the job of an app as a person would, for the binary under test.
func (c cluster) submit(t *testing.T, name, run, app string, words ...string) (id string) {
	t.Helper()
	script := job.Render(t, muster, append([]string{
		"slurm", app, "--app-id", name, "--run", run, "--binary", muster, "--registry", c.consul.URL(), "--engine", "process",
		"--work-dir", filepath.Join(c.dir, name), "--log-dir", filepath.Join(c.dir, name, "log"),
	}, words...)...)
	return c.Submit(script, "--export=ALL,MUSTER_AGENT_STATE_DIR="+c.state())
}

// over tells that a job has ended, or is in the queue again.
func over(j slurm.Job) bool {
	return j.State == "COMPLETED" || j.State == "FAILED" || j.State == "CANCELLED" || j.State == "PENDING" && j.Restarts > 0
}

func four(all []job.Life) bool { return len(all) == 4 }

// fourTasks leads a gang through the end of an agent, the queue, and the end of its job.
func (c cluster) fourTasks(t *testing.T, app string) {
	id := c.submit(t, "four", "r", app, "--set", "global:muster.restart=gang")
	lives := job.AwaitLives(t, c.logs("four"), "four starts", four)
	var got []string
	for _, l := range lives {
		got = append(got, fmt.Sprintf("%s %d %d", l.Instance, l.Generation, l.Attempt))
	}
	slices.Sort(got)
	if want := []string{"ps-0 1 1", "worker-0 1 1", "worker-1 1 1", "worker-2 1 1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for rank, instance := range []string{"ps-0", "worker-0", "worker-1", "worker-2"} {
		if _, ok := c.agents(id)[rank]; !ok || !strings.Contains(c.Output(id), "instance="+instance) {
			t.Errorf("no task %d with an agent, or none that is %s", rank, instance)
		}
	}

	if err := syscall.Kill(c.agents(id)[2], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.Await(id, "its place in the queue again", func(j slurm.Job) bool { return j.State == "PENDING" && j.Restarts == 1 })
	c.StartNow(id)
	gathered := func(all []job.Life) bool { return job.Gathered(all, 1, 4) != nil }
	for _, l := range job.Gathered(job.AwaitLives(t, c.logs("four"), "all of another generation", gathered), 1, 4) {
		if l.Step != 1 {
			t.Errorf("after the queue: got %+v, want it to go on from step 1", l)
		}
	}

	c.Cancel(id)
	c.Await(id, "its end without a process", func(j slurm.Job) bool { return j.State == "CANCELLED" && len(c.JobProcesses(id)) == 0 })
	for _, instance := range []string{"ps-0", "worker-0", "worker-1", "worker-2"} {
		if _, err := os.Stat(filepath.Join(c.dir, "four", instance, "saves", "step-2")); err != nil {
			t.Errorf("cancelled: %s has not saved itself: %v", instance, err)
		}
	}
}

// notAgain has a program end with 75, which is its own: the agents end with 93.
func (c cluster) notAgain(t *testing.T, app string) {
	id := c.submit(t, "bad", "r", app, "--set", "global:muster.restart=never")
	job.AwaitLives(t, c.logs("bad"), "four starts", four)
	c.signal(t, "bad", "USR2", "worker-1")
	if j := c.Await(id, "its end", over); j.State != "FAILED" || j.Exit != 93 || j.Restarts != 0 {
		t.Errorf("got %+v, want 93 and no restart\n%s", j, c.Output(id))
	}
}

// newRun submits an app that runs already: its agents end with 75, and the job runs when the other is over.
func (c cluster) newRun(t *testing.T, app string) {
	first := c.submit(t, "twice", "one", app)
	job.AwaitLives(t, c.logs("twice"), "four starts", four)
	second := c.submit(t, "twice", "two", app)
	if j := c.Await(second, "its place in the queue again", over); j.State != "PENDING" || !strings.Contains(c.Output(second), "run one is not finished") {
		t.Errorf("got %+v, want it in the queue after 75\n%s", j, c.Output(second))
	}
	workers := []string{"worker-0", "worker-1", "worker-2"}
	c.signal(t, "twice", "USR1", workers...)
	if j := c.Await(first, "its end", over); j.State != "COMPLETED" || j.Restarts != 0 {
		t.Errorf("got %+v, want it complete\n%s", j, c.Output(first))
	}
	c.StartNow(second)
	job.AwaitLives(t, c.logs("twice"), "all of another generation", func(all []job.Life) bool { return job.Gathered(all, 1, 4) != nil })
	c.signal(t, "twice", "USR1", workers...)
	if j := c.Await(second, "its end", over); j.State != "COMPLETED" || j.Restarts != 1 {
		t.Errorf("got %+v, want it complete after one restart\n%s", j, c.Output(second))
	}
	if out := c.Output(second); !strings.Contains(out, "run=two-1") {
		t.Errorf("no run two-1:\n%s", out)
	}
}

// timeIsOver has a job that was told of the end of its time: its agents save themselves, and it is not put into the queue.
func (c cluster) timeIsOver(t *testing.T, id string) {
	ended := func(j slurm.Job) bool { return over(j) || j.State == "TIMEOUT" }
	if j := c.Await(id, "its end", ended); j.State != "FAILED" || j.Exit != 143 && j.Exit != 137 || j.Restarts != 0 {
		t.Errorf("got %+v, want what a signal leaves, and no restart\n%s", j, c.Output(id))
	}
}

// parts has components of different sizes: a heterogeneous job, whose ps has all cores of its node. When an agent of one part is killed those of the other part are
// told, and both go into the queue.
func (c cluster) parts(t *testing.T, app string) {
	id := c.submit(t, "parts", "r", app, "--set", "ps:yarn.vcores=max")
	lives := job.AwaitLives(t, c.logs("parts"), "four starts", four)
	for _, instance := range []string{"ps-0", "worker-0", "worker-1", "worker-2"} {
		if len(job.Of(lives, instance)) != 1 {
			t.Errorf("no start of %s in %+v", instance, lives)
		}
	}

	if out := c.Run("scontrol", "show", "step"); !strings.Contains(out, " CPUs=8 Tasks=1 ") {
		t.Errorf("the step of ps has not all 8 cores of its node:\n%s", out)
	}

	for _, pid := range c.agents(id) { // of one step: the others have one of their own
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		break
	}
	c.Await(id, "the place of both parts in the queue again", func(j slurm.Job) bool { return j.State == "PENDING" && j.Restarts == 1 && len(c.JobProcesses(id)) == 0 })
	c.Cancel(id)
	c.AwaitState(id, "CANCELLED")
}

// page follows what the page says, from its first line to its last.
func (c cluster) page(t *testing.T) {
	dir := folder.Temp(t, "ms-")
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(muster, filepath.Join(bin, "muster"))); err != nil {
		t.Fatal(err)
	}
	lines := job.Lines(job.Page(t, "../../../doc/launcher-slurm.md"), "slurm")
	if len(lines) < 8 {
		t.Fatalf("only %d lines", len(lines))
	}
	for _, l := range lines {
		cmd := exec.Command("sh", "-c", "exec 2>&1; PATH="+bin+":$PATH; "+strings.ReplaceAll(l.Text, "consul://127.0.0.1:8500", c.consul.URL()))
		cmd.Dir = dir
		cmd.Env = append(c.Environ(), "MUSTER_AGENT_STATE_DIR="+c.state())
		began := time.Now()
		said, err := c.Jail().Output(cmd)
		t.Logf("%s: %s", time.Since(began).Round(time.Millisecond), l.Text)
		if err != nil {
			t.Fatalf("%s: %v", l.Text, err)
		}
		l.Check(t, said)
	}
}

// agents are the pids of a job's agents by their task's number.
func (c cluster) agents(id string) map[int]int {
	pids := map[int]int{}
	for _, pid := range c.JobProcesses(id) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words := strings.Split(string(text), "\x00")
		if err != nil || words[0] != muster || !slices.Contains(words, "--kill-window") {
			continue
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // it may have ended
		for entry := range strings.SplitSeq(string(env), "\x00") {
			if rank, ok := strings.CutPrefix(entry, "SLURM_PROCID="); ok {
				n, err := strconv.Atoi(rank)
				if err != nil {
					c.t.Fatal(err)
				}
				pids[n] = pid
			}
		}
	}
	return pids
}
