// Package reach_test plays gangs whose members are told addresses that are of no use to the others, or places that they
// must not share: what a person hears of it before the training starts, and that nothing fails for it. Network namespaces
// are the hosts.
package reach_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry/embedded"
	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/netns"
)

// watchdog ends a test that has gone wrong.
const watchdog = 90 * time.Second

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// nobodys is an address of no host (RFC 5737).
const nobodys = "198.51.100.7"

// TestUnreachable: the third host's agent exports an address that no other host has a way to. The others say so before
// they start, with what would do, and all go on: this job has no need of it.
func TestUnreachable(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := newJob(t, nil)
	n := netns.New(t, 3)
	registry := j.embedded()
	var agents []*agent
	for i := range 3 {
		host := n.Addr(i)
		if i == 2 {
			host = nobodys
		}
		agents = append(agents, j.agent(i, func(args ...string) *exec.Cmd { return n.Command(i, muster, args...) },
			"--registry", registry, "--host", host))
	}
	j.running()

	for _, i := range []int{0, 1} {
		kinds := j.events(i)
		warned, ran := slices.Index(kinds, "warning"), slices.Index(kinds, "started")
		if warned < 0 || ran < 0 || warned > ran {
			t.Errorf("worker-%d: a warning before its start: %q", i, kinds)
		}
		if text := j.read(agents[i].log); !strings.Contains(text, "peers unreachable") || !strings.Contains(text, nobodys) {
			t.Errorf("worker-%d's own log says nothing:\n%s", i, text)
		}
	}
	if kinds := j.events(2); !slices.Contains(kinds, "started") {
		t.Errorf("worker-2 never started: %q", kinds)
	}
	// Who asks on any host hears whom it is about: the registry has what the members have found.
	var row warned
	j.await("both peers in worker-2's warning", func() bool {
		row = j.view()["worker-2"]
		return strings.Contains(row.text("unreachable"), "worker-0 at ") && strings.Contains(row.text("unreachable"), "worker-1 at ")
	})
	if text := row.text("unreachable"); !strings.Contains(text, nobodys) || !strings.Contains(text, "--host") {
		t.Errorf("worker-2's warning is %q", text)
	}
	for _, peer := range []string{"worker-0", "worker-1"} { // and these can be reached, by all
		if text := j.view()[peer].text("unreachable"); strings.Contains(text, "its agent") {
			t.Errorf("%s can be reached, and is said not to be: %s", peer, text)
		}
	}
	text, err := j.muster("status", j.app)
	if err != nil || !strings.Contains(text, "worker-2: its agent cannot be reached at "+nobodys) {
		t.Errorf("status: %v\n%s", err, text)
	}
	j.finish(agents)
}

// TestTogether: members of a component that are to be apart share a machine, and say so; those of another may.
func TestTogether(t *testing.T) {
	need.Root(t)
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit settings
		want  bool
	}{
		{"placement policy", settings{"yarn.component.placement.policy": "4"}, true},
		{"muster.spread", settings{"muster.spread": "host"}, true},
		{"anywhere", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t, tt.limit)
			registry := j.loopback()
			var agents []*agent
			for i := range 3 {
				agents = append(agents, j.agent(i, func(args ...string) *exec.Cmd { return exec.Command(muster, args...) }, "--registry", registry, "--host", "127.0.0.1"))
			}
			j.running()
			text := j.view()["worker-1"].text("together")
			if got := strings.Contains(text, "worker-0, worker-2") && strings.Contains(text, "muster.spread"); got != tt.want {
				t.Errorf("worker-1's warning is %q; want one: %v", text, tt.want)
			}
			if got := slices.Contains(j.events(1), "warning"); got != tt.want {
				t.Errorf("worker-1's events: %q; want a warning: %v", j.events(1), tt.want)
			}
			j.finish(agents)
		})
	}
}

// TestSlot: an agent that is killed with all its pid namespace, and started again in another by the same launcher, in the
// same allocation: nobody sees the old process any more, but an allocation has one such task at a time. Its index is taken at
// once; without the launcher's word it would be after more than a minute.
func TestSlot(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := newJob(t, nil)
	registry := j.loopback()
	plain := func(args ...string) *exec.Cmd { return exec.Command(muster, args...) }
	inside := func(args ...string) *exec.Cmd {
		return exec.Command("unshare", append([]string{"--pid", "--fork", "--kill-child", "--mount-proc", muster}, args...)...)
	}
	nomad := []string{"NOMAD_ALLOC_ID=" + j.app, "NOMAD_TASK_NAME=agent", "NOMAD_GROUP_NAME=worker", "NOMAD_ALLOC_INDEX=0"}
	where := []string{"--registry", registry, "--host", "127.0.0.1"}
	agents := []*agent{j.agent(1, plain, where...), j.agent(2, plain, where...)}
	first := j.agentWith(0, nomad, inside, where...)
	j.running()
	j.must(syscall.Kill(-first.Process.Pid, syscall.SIGKILL))
	<-first.done
	j.must(os.Remove(filepath.Join(j.top, "seen", "up-0")))
	began := time.Now()
	agents = append(agents, j.agentWith(0, nomad, inside, where...))
	j.running()
	if took := time.Since(began); took > loss {
		t.Errorf("worker-0 was back after %s; want before its loss would have been", took)
	}
	j.finish(agents)
}

// TestSlurm: a task's number is its rank, whoever comes first; what is started in the batch script itself has none, though
// it finds a 0 there too, and claims what is free.
func TestSlurm(t *testing.T) {
	need.Root(t)
	t.Parallel()
	for _, tt := range []struct {
		name string
		task func(i int) []string
		rank bool
	}{
		{"a step's tasks", func(i int) []string { return []string{"SLURM_STEP_ID=0", fmt.Sprint("SLURM_PROCID=", i)} }, true},
		{"the batch script", func(int) []string { return []string{"SLURM_PROCID=0"} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t, nil)
			registry := j.loopback()
			command := func(args ...string) *exec.Cmd { return exec.Command(muster, withoutIndex(args)...) }
			var agents []*agent
			for _, i := range []int{2, 0, 1} {
				environ := append(tt.task(i), fmt.Sprint("SLURM_JOB_ID=", os.Getpid()))
				agents = append(agents, j.agentWith(i, environ, command, "--registry", registry, "--host", "127.0.0.1"))
			}
			j.running()
			for at, i := range []int{2, 0, 1} {
				text := j.read(agents[at].log)
				if got := strings.Contains(text, fmt.Sprint("claimed instance=worker-", i, " ")); tt.rank && !got {
					t.Errorf("task %d is not worker-%d:\n%s", i, i, text)
				}
				if got := strings.Contains(text, "no rank here"); got == tt.rank {
					t.Errorf("a word about the batch script: %v, want %v", got, !tt.rank)
				}
			}
			j.finish(agents)
		})
	}
}

// withoutIndex takes component and index away from an agent's arguments.
func withoutIndex(args []string) []string {
	at := slices.Index(args, "--component")
	return slices.Delete(slices.Clone(args), at, at+4)
}

// loss is less than the grace of a vanished member by default, which is the least that its index takes without a slot.
const loss = 40 * time.Second

// job is a gang of three workers. Methods end the test on errors.
type job struct {
	t   *testing.T
	app string
	top string
}

type settings = map[string]string

// agent is a muster agent.
type agent struct {
	*exec.Cmd
	log  string
	done chan struct{}
}

func newJob(t *testing.T, limits settings) *job {
	t.Helper()
	top := folder.Temp(t, "mr-")
	folder.OfAll(t, filepath.Join(top, "seen"))
	j := &job{t: t, app: "reach" + strconv.Itoa(os.Getpid()), top: top}
	worker := settings{"yarn.role.priority": "1", "yarn.component.instances": "3", "yarn.memory": "64", "yarn.vcores": "1"}
	maps.Copy(worker, limits)
	type object = map[string]any
	const schema = "http://example.org/specification/v2.0.0"
	export := object{"name": "address", "value": "${worker_HOST}:${site.global.worker.port}"}
	for name, value := range map[string]any{
		"metainfo.json": object{"schemaVersion": "2.1", "application": object{
			"name": "reach", "version": "1", "exportGroups": []any{object{"name": "worker", "exports": []any{export}}},
			"components": []any{object{"name": "worker", "category": "SLAVE", "compExports": "worker-address"}},
		}},
		"appConfig.default.json": object{"schema": schema, "global": settings{
			"muster.framework": "none", "site.global.worker.port": "${worker.ALLOCATED_PORT}{PER_CONTAINER}",
			"muster.command": fmt.Sprintf("touch %[1]s/seen/up-$MUSTER_INDEX; while [ ! -e %[1]s/go ]; do sleep 0.1; done", top),
		}},
		"resources.default.json": object{"schema": schema, "components": object{"worker": worker}},
	} {
		text, err := json.Marshal(value)
		j.must(err)
		j.must(os.MkdirAll(filepath.Join(top, "app"), 0o755))
		j.must(os.WriteFile(filepath.Join(top, "app", name), text, 0o644))
	}
	return j
}

// embedded serves a registry at a socket, which all namespaces see.
func (j *job) embedded() string {
	path := filepath.Join(j.top, "registry.sock")
	l, err := embedded.ListenUnix(j.t.Context(), path)
	j.must(err)
	j.serve(embedded.Options{Listener: l})
	return "unix:" + path
}

// loopback serves one as Consul does: agents of any host may be its clients.
func (j *job) loopback() string {
	l, err := embedded.ListenLoopback(j.t.Context(), "127.0.0.1:0")
	j.must(err)
	j.serve(embedded.Options{Listener: l})
	return "consul://" + l.Addr().String()
}

func (j *job) serve(o embedded.Options) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- embedded.Serve(ctx, o) }()
	j.t.Cleanup(func() {
		cancel()
		j.must(<-done)
	})
}

// agent starts the one of worker-i.
func (j *job) agent(i int, command func(...string) *exec.Cmd, more ...string) *agent {
	j.t.Helper()
	return j.agentWith(i, nil, command, more...)
}

// agentWith starts it with further variables.
func (j *job) agentWith(i int, environ []string, command func(...string) *exec.Cmd, more ...string) *agent {
	j.t.Helper()
	cmd := command(append([]string{
		"agent", "--app", filepath.Join(j.top, "app"), "--app-id", j.app, "--component", "worker", "--index", strconv.Itoa(i),
		"--work-dir", filepath.Join(j.top, "work"), "--state-dir", filepath.Join(j.top, "state"), "--engine", "process",
	}, more...)...)
	path := filepath.Join(j.top, fmt.Sprintf("agent-%d.log", i))
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	j.must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.top, "LANG=C"}, environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	j.must(cmd.Start())
	a := &agent{Cmd: cmd, log: path, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its state tells
		close(a.done)
	}()
	j.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it has ended where all went well
		select {
		case <-a.done:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-a.done
		}
		if j.t.Failed() {
			j.t.Logf("%s:\n%s", filepath.Base(path), j.read(path))
		}
	})
	return a
}

// running waits until the three processes are up.
func (j *job) running() {
	j.t.Helper()
	j.await("three processes", func() bool {
		up, _ := filepath.Glob(filepath.Join(j.top, "seen", "up-*")) // the pattern is right
		return len(up) == 3
	})
}

// finish lets the processes end.
func (j *job) finish(agents []*agent) {
	j.t.Helper()
	j.must(os.WriteFile(filepath.Join(j.top, "go"), nil, 0o644))
	for _, a := range agents {
		select {
		case <-a.done:
		case <-time.After(watchdog):
			j.t.Fatalf("%s: no end within %s", filepath.Base(a.log), watchdog)
		}
		if code := a.ProcessState.ExitCode(); code != 0 {
			j.t.Errorf("%s: exit code %d", filepath.Base(a.log), code)
		}
	}
}

// events are what worker-i's events.jsonl tells, in order; "started" is the way to running.
func (j *job) events(i int) []string {
	j.t.Helper()
	f, err := os.Open(filepath.Join(j.top, "work", "log", fmt.Sprint("worker-", i), "events.jsonl"))
	j.must(err)
	defer f.Close()
	var kinds []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e struct{ Event, From, To string }
		j.must(json.Unmarshal(lines.Bytes(), &e))
		if e.From != e.To && e.To == "running" {
			e.Event = "started"
		}
		kinds = append(kinds, e.Event)
	}
	return kinds
}

// warned is a row of status.
type warned struct {
	Instance string
	Warnings []struct{ Kind, Text string }
}

// text are the warnings of a kind, in lines.
func (w warned) text(kind string) string {
	var lines []string
	for _, one := range w.Warnings {
		if one.Kind == kind {
			lines = append(lines, one.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// view is what muster ps says of the gang.
func (j *job) view() map[string]warned {
	j.t.Helper()
	out, err := j.muster("ps", j.app, "--json")
	var v struct{ Instances []warned }
	if err := errors.Join(err, json.Unmarshal([]byte(out), &v)); err != nil {
		j.t.Fatalf("muster ps: %v: %s", err, out)
	}
	rows := map[string]warned{}
	for _, row := range v.Instances {
		rows[row.Instance] = row
	}
	return rows
}

func (j *job) muster(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, muster, append(args, "--state-dir", filepath.Join(j.top, "state"))...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.top}
	out, err := cmd.Output()
	return string(out), err
}

// await looks again and again until see says yes.
func (j *job) await(what string, see func() bool) {
	j.t.Helper()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	for !see() {
		select {
		case <-poll.C:
		case <-dog.C:
			j.t.Fatalf("not seen within %s: %s", watchdog, what)
		}
	}
}

func (j *job) read(path string) string {
	text, err := os.ReadFile(path)
	j.must(err)
	return string(text)
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}
