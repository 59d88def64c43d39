// Package nomad_test gives a real Nomad the jobs that `muster render nomad` writes, and looks at what becomes of them: ports,
// restarts in place, other allocations, ends. Set MUSTER_BINARY to try a binary that is there already.
package nomad_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/launchers/job"
	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/nomadserver"
)

// watchdog bounds one line of the page: some wait for a whole job.
const watchdog = 3 * time.Minute

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// cluster is one Nomad and one Consul for all jobs of a test.
type cluster struct {
	*nomadserver.Server
	t      *testing.T
	consul *consulserver.Server
	state  string // folder of agents that are not in a chroot
}

func start(t *testing.T) cluster {
	t.Helper()
	state := filepath.Join(folder.Temp(t, "muster-nomad-"), "s") // in a chroot it is made anew, for another user
	o := nomadserver.Options{Env: []string{"MUSTER_AGENT_STATE_DIR=" + state}, Chroot: chroot(t)}
	server := nomadserver.Start(t, o)
	t.Cleanup(func() {
		if t.Failed() {
			logs(t, filepath.Join(server.Dir, "alloc/*/alloc/logs/muster.std*"))
			logs(t, filepath.Join(server.Dir, "alloc/*/alloc/logs/muster/*/*.log"))
		}
	})
	return cluster{server, t, consulserver.Start(t, consulserver.Options{}), state}
}

// logs shows the ends of files.
func logs(t *testing.T, pattern string) {
	t.Helper()
	found, _ := filepath.Glob(pattern) // only a bad pattern is an error
	for _, path := range found {
		text, _ := os.ReadFile(path)
		t.Logf("the end of %s:\n%s", path, text[max(0, len(text)-3000):])
	}
}

// chroot is what the tasks of exec find: what the page says, and the binary under test.
func chroot(t *testing.T) map[string]string {
	t.Helper()
	binary, err := filepath.Abs(muster)
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^    "(/\S+)" = "(/\S+)"$`).FindAllStringSubmatch(job.Page(t, page), -1) {
		from := m[1]
		if from == "/usr/local/bin/muster" {
			from = binary
		}
		paths[from] = m[2]
	}
	if len(paths) < 5 || paths[binary] == "" {
		t.Fatalf("got %v of the page's chroot_env", paths)
	}
	return paths
}

// render writes the job of an app as a person would, for the binary under test.
func (c cluster) render(id, app string, words ...string) string {
	c.t.Helper()
	return job.Render(c.t, muster, append([]string{"nomad", app, "--app-id", id, "--binary", muster, "--registry", c.consul.URL()}, words...)...)
}

// folders are the log folders of all instances of an allocation.
func (c cluster) folders(allocation string) string {
	return filepath.Join(c.Dir, "alloc", allocation, "alloc/logs/muster/*")
}

// confined holds that the agents of an allocation took an engine.
func (c cluster) confined(allocation, engine string) {
	c.t.Helper()
	logs, _ := filepath.Glob(filepath.Join(c.folders(allocation), "agent.log")) // only a bad pattern is an error
	if len(logs) == 0 {
		c.t.Errorf("%s: no log of an agent", allocation)
	}
	for _, path := range logs {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "msg=confined engine="+engine+" ") {
			c.t.Errorf("%s: want the engine %s: %v\n%s", path, engine, err, text)
		}
	}
}

// signal has the agents of instances send their processes a signal.
func (c cluster) signal(app, signal string, instances ...string) {
	c.t.Helper()
	for _, instance := range instances {
		cmd := exec.CommandContext(c.t.Context(), muster, "signal", "--state-dir", c.state, app+"/"+instance, signal)
		if out, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
		}
	}
}

// TestRendered has one Nomad for all jobs.
func TestRendered(t *testing.T) {
	c := start(t)
	t.Run("a life", func(t *testing.T) { aLife(t, c) })
	t.Run("killed with its guard", func(t *testing.T) { killed(t, c) })
	t.Run("in a chroot", func(t *testing.T) { inChroot(t, c) })
	t.Run("the page", func(t *testing.T) { thePage(t, c) })
}

// aLife leads one gang of containers through what Nomad does to it: its ports, the death of an agent, an allocation that is
// stopped, its end.
func aLife(t *testing.T, c cluster) {
	dir := folder.Temp(t, "mn-")
	app := job.Saver(t, dir, 2, map[string]string{"muster.checkpoint.sync": "kept"})
	id := c.Submit(c.render("life", app, "--default-fs", "file:"+folder.OfAll(t, filepath.Join(dir, "store"))))
	logs := c.folders("*")
	lives := job.AwaitLives(t, logs, "three starts", func(all []job.Life) bool { return len(all) == 3 })
	first := map[string]nomadserver.Allocation{}
	for _, a := range c.AwaitAllocations(id, "three that run", running(3)) {
		instance := fmt.Sprintf("%s-%d", a.TaskGroup, a.Index())
		first[instance] = a
		l := job.Of(lives, instance)
		if len(l) != 1 || l[0].Generation != 1 || l[0].Attempt != 1 {
			t.Fatalf("%s: got %+v, want one start in generation 1", instance, l)
		}
		if got, want := l[0].Port, c.Ports(a.ID)["global_"+a.TaskGroup+"_port"]; got != want {
			t.Errorf("%s: got port %d, want Nomad's %d", instance, got, want)
		}
		c.confined(a.ID, "container")
	}

	for _, pid := range c.agents(first["worker-0"].ID) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	lives = job.AwaitLives(t, logs, "worker-0 again", func(all []job.Life) bool { return len(job.Of(all, "worker-0")) == 2 })
	if got := job.Of(lives, "worker-0"); got[1].Port != got[0].Port || got[1].Generation != 1 || len(lives) != 4 {
		t.Errorf("after its agent was killed: got %+v, want the same port and generation, and no other start", lives)
	}

	stopped := first["worker-1"].ID
	c.StopAllocation(stopped)
	lives = job.AwaitLives(t, logs, "worker-1 again", func(all []job.Life) bool { return len(job.Of(all, "worker-1")) == 2 })
	all := c.AwaitAllocations(id, "three that run", running(3))
	another := all[slices.IndexFunc(all, func(a nomadserver.Allocation) bool {
		return a.TaskGroup == "worker" && a.Index() == 1 && a.ID != stopped
	})]
	again := job.Of(lives, "worker-1")[1]
	if want := c.Ports(another.ID)["global_worker_port"]; again.Port != want { // by chance it may be the same again
		t.Errorf("after its allocation was stopped: got port %d, want Nomad's %d", again.Port, want)
	}
	if again.Step != 1 || again.Generation != 1 || len(lives) != 5 {
		t.Errorf("after its allocation was stopped: got %+v, want it to go on from the step that it saved when it was told to stop, and no other start", lives)
	}

	c.signal("life", "USR1", "worker-0", "worker-1")
	c.AwaitJob(id, "dead")
	all = c.AwaitAllocations(id, "all complete", func(all []nomadserver.Allocation) bool { return count(all, "complete") == 4 })
	for _, a := range all {
		want := []int{0}
		switch a.ID {
		case first["worker-0"].ID:
			want = []int{137, 0}
		case stopped:
			want = []int{130}
		}
		if got := a.ExitCodes(); !slices.Equal(got, want) {
			t.Errorf("got exit codes %v, want %v: %s", got, want, a)
		}
	}
	c.Purge(id)
}

// deaf is a program that nothing but SIGKILL ends, with a child in a session of its own.
const deaf = `trap "" TERM INT; setsid sleep 1000 & echo "life $EPOCHREALTIME $MUSTER_INSTANCE $MUSTER_GENERATION $MUSTER_ATTEMPT 0 0"; while :; do sleep 1; done`

// killed has Nomad kill agents that take longer to stop than it waits. It freezes and kills all that is in the task's control
// group, and the guard is in it.
func killed(t *testing.T, c cluster) {
	app := job.Saver(t, t.TempDir(), 1, map[string]string{"muster.command": "exec bash -c '" + deaf + "'", "muster.stop.grace": "600"})
	engines := []string{"process", "cgroup", "container"}
	name := func(engine string) string { return fmt.Sprintf("deaf-%d-%s", os.Getpid(), engine) } // of control groups, too
	t.Cleanup(func() {
		for _, engine := range engines {
			clearGroups(name(engine))
		}
	})
	allocations := map[string][]string{}
	for _, engine := range engines {
		id := c.Submit(c.render(name(engine), app, "--engine", engine, "--kill-window", "1s"))
		for _, a := range c.AwaitAllocations(id, "two that run", running(2)) {
			allocations[engine] = append(allocations[engine], a.ID)
		}
	}
	for _, engine := range engines {
		for _, id := range allocations[engine] {
			job.AwaitLives(t, c.folders(id), "its start", func(all []job.Life) bool { return len(all) == 1 })
		}
		if got := len(c.Jail().ProcessesWith("MUSTER_APP_ID=" + name(engine))); got < 4 {
			t.Errorf("%s: got %d processes of programs, want 4 at least", engine, got)
		}
		c.StopJob(name(engine))
	}
	for _, engine := range engines {
		all := c.AwaitAllocations(name(engine), "their end", func(all []nomadserver.Allocation) bool { return running(0)(all) })
		for _, a := range all {
			if got := a.ExitCodes(); !slices.Equal(got, []int{137}) {
				t.Errorf("%s: got exit codes %v, want 137: %s", engine, got, a)
			}
		}
		left := func() (pids []int) {
			for _, id := range allocations[engine] {
				pids = append(pids, c.TaskProcesses(id)...)
			}
			return append(pids, c.Jail().ProcessesWith("MUSTER_APP_ID="+name(engine))...)
		}
		for ask := job.Until(t, func() string { return fmt.Sprintf("%s: nothing left, but %v", engine, left()) }); ask.Next(); {
			if len(left()) == 0 {
				break
			}
		}
		c.Purge(name(engine))
	}
}

// clearGroups removes an app's control groups. They are empty, and the next agent of the app would do it.
func clearGroups(app string) {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path, "/muster/"+app) {
			found = append(found, path)
		}
		return nil // others come and go meanwhile
	})
	for _, path := range slices.Backward(found) {
		_ = os.Remove(path)
	}
}

// inChroot has an app of Python run under the driver exec, by a user who is nobody.
func inChroot(t *testing.T, c cluster) {
	id := c.Submit(c.render("handwriting", "catalog:handwriting", "--driver", "exec", "--binary", "/usr/local/bin/muster", "--instances", "worker=2",
		"--set", "global:site.global.train.steps=60", "--set", "global:site.global.train.pace=0"))
	all := c.AwaitAllocations(id, "three that have ended", func(all []nomadserver.Allocation) bool { return count(all, "complete") == 3 })
	for _, a := range all {
		if got := a.ExitCodes(); !slices.Equal(got, []int{0}) {
			t.Errorf("got exit codes %v: %s", got, a)
		}
	}
	c.AwaitJob(id, "dead")
}

// page is the document on Nomad.
const page = "../../../doc/launcher-nomad.md"

// thePage follows what the page says, from its first line to its last.
func thePage(t *testing.T, c cluster) {
	nomad, err := nomadserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := folder.Temp(t, "mn-")
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(nomad, filepath.Join(bin, "nomad")), os.Symlink(muster, filepath.Join(bin, "muster"))); err != nil {
		t.Fatal(err)
	}
	lines := job.Lines(job.Page(t, page), "nomad")
	if len(lines) < 10 {
		t.Fatalf("only %d lines", len(lines))
	}
	for _, l := range lines {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(l.Text, "consul://127.0.0.1:8500", c.consul.URL()))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "NOMAD_ADDR=http://"+c.HTTPAddr, "MUSTER_AGENT_STATE_DIR="+c.state)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		began := time.Now()
		err := leash.Run(cmd, watchdog)
		t.Logf("%s: %s", time.Since(began).Round(time.Millisecond), l.Text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", l.Text, err, said.String())
		}
		l.Check(t, said.String())
	}
}

// agents are the pids of an allocation's agents, without guards and what they run.
func (c cluster) agents(allocation string) []int {
	c.t.Helper()
	var pids []int
	for _, pid := range c.TaskProcesses(allocation) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && slices.Contains(strings.Split(string(text), "\x00"), "--kill-window") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func running(n int) func([]nomadserver.Allocation) bool {
	return func(all []nomadserver.Allocation) bool { return count(all, "running") == n }
}

func count(all []nomadserver.Allocation, status string) int {
	n := 0
	for _, a := range all {
		if a.ClientStatus == status {
			n++
		}
	}
	return n
}
