package yarn_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// keeping has checkpoints go to HDFS.
func (l *lab) keeping(args ...string) []string {
	return append([]string{"--set", "muster.checkpoint.sync=" + l.dir + "/kept"}, args...)
}

// lasting is a training of so many steps, ten in a second, which stores something each second. The steps may be a command
// of the shell that begins each process.
func lasting(steps string) []string {
	return []string{"--set", "site.global.train.steps=" + steps, "--set", "site.global.train.pace=0.1", "--set", "site.global.train.checkpoint.every=10"}
}

// endless has a training go on for as long as it takes to disturb it. What is started after enough has been called ends
// seconds after the steps that were made.
func (l *lab) endless(app string) []string {
	l.t.Helper()
	l.steps(app, 1_000_000)
	return l.keeping(lasting("$(cat " + l.stepsOf(app) + ")")...)
}

func (j *job) enough() { j.steps(j.app, j.stored()+50) }

func (l *lab) stepsOf(app string) string { return filepath.Join(l.own, app+".steps") }

func (l *lab) steps(app string, n int) {
	l.t.Helper()
	path := l.stepsOf(app)
	err := os.WriteFile(path+".new", []byte(strconv.Itoa(n)), 0o644)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func TestYARN(t *testing.T) {
	l := newLab(t, nil)
	lost := l.apart("service", "lost")
	t.Run("all", func(t *testing.T) {
		t.Run("host lost", func(t *testing.T) {
			t.Parallel()
			lost.lab = l.of(t)
			lost.hostLost()
		})
		t.Run("killed", func(t *testing.T) {
			t.Parallel()
			l.of(t).killed("shell")
		})
		t.Run("fails", func(t *testing.T) {
			t.Parallel()
			l.of(t).fails("shell")
		})
		t.Run("fails, service", func(t *testing.T) {
			t.Parallel()
			l.of(t).fails("service")
		})
		t.Run("page", func(t *testing.T) {
			t.Parallel()
			l.of(t).page()
		})
		t.Run("guard", func(t *testing.T) {
			t.Parallel()
			l.of(t).guarded()
		})
		t.Run("hbox-submit", func(t *testing.T) {
			t.Parallel()
			l.of(t).hbox()
		})
		t.Run("over its limit", func(t *testing.T) {
			t.Parallel()
			l.of(t).overLimit()
		})
	})
	l.await("the first host to have its NodeManager alone", func() bool { return len(l.y.NodeProcesses(0)) == 0 })
}

// apart submits a run of which ps-0 is on the second host alone, and the rest, the master too, on the first. In the middle of
// the training its workers are halted.
func (l *lab) apart(form, app string) *job {
	l.t.Helper()
	l.y.Resize(1, 0)
	submitted := l.submitting(form, app, l.keeping(append(lasting("300"), "--lost-mass", "1m")...)...)
	l.await("its master", func() bool {
		return slices.ContainsFunc(l.y.Applications(), func(a hadoop.Application) bool { return a.Name == app && a.RunningContainers == 1 })
	})
	l.y.Resize(0, masterRoom) // long before the master, a Java that begins, asks for containers
	l.y.Resize(1, agentRoom)
	j := submitted()
	var folder string
	j.await("a container on the second host", func() bool {
		folders := j.logs("ps-0", "agent.log")
		if len(folders) == 1 {
			folder = folders[0]
		}
		return folder != ""
	})
	if !strings.Contains(folder, "/node-1/") {
		j.t.Fatalf("ps-0 is at %s, want the second host", folder)
	}
	l.y.Resize(0, wholeHost)
	j.await("a checkpoint on HDFS", func() bool { return j.stored() > 0 })
	j.signal(syscall.SIGSTOP)
	return j
}

// signal tells the processes of the training on the first host.
func (j *job) signal(number syscall.Signal) {
	j.t.Helper()
	told := 0
	for _, pid := range j.y.NodeProcesses(0) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); !j.has(pid) || !bytes.HasPrefix(name, []byte("python3\x00")) {
			continue
		}
		if err := syscall.Kill(pid, number); err != nil {
			j.t.Fatal(err)
		}
		told++
	}
	if told == 0 {
		j.t.Fatalf("no process of %s's training on the first host", j.app)
	}
}

// hostLost kills the host of ps-0, its NodeManager and all its containers, in the middle of the training.
func (j *job) hostLost() {
	t := j.t
	before := j.status()
	if before.Phase != "running" || before.Generation != 1 {
		t.Errorf("got %+v, want generation 1 running", before)
	}
	var held []string
	for _, in := range before.Instances {
		held = append(held, in.Instance)
		component, _, _ := strings.Cut(in.Instance, "-")
		at := in.Exports[component+".host_port"]
		if host, _, err := net.SplitHostPort(at); err != nil || host != in.Host {
			t.Errorf("%s at %s exports %v, want its host_port", in.Instance, in.Host, in.Exports)
		}
		if component != "ps" {
			continue // a worker listens to nobody
		}
		c, err := net.DialTimeout("tcp", at, watchdog)
		if err != nil {
			t.Fatalf("%s exports %s: %v", in.Instance, at, err)
		}
		c.Close()
	}
	if want := []string{"ps-0", "worker-0", "worker-1", "worker-2"}; !slices.Equal(held, want) {
		t.Errorf("claimed: %v, want %v", held, want)
	}

	stored := j.stored()
	j.y.KillNode(1)
	if left := j.y.NodeProcesses(1); len(left) != 0 {
		t.Errorf("processes %v are left on a host that is gone", left)
	}
	j.await("a second ps-0", func() bool { return len(j.logs("ps-0", "stdout.log")) == 2 })
	j.signal(syscall.SIGCONT)
	j.ends("SUCCEEDED")
	after := j.status()
	if after.Phase != "done" || after.Outcome != "succeeded" || after.Instances[0].Attempt < 2 {
		t.Errorf("got %+v, want success with a second attempt of ps-0", after)
	}
	logs := j.logs("ps-0", "stdout.log")
	if len(logs) != 2 || !strings.Contains(logs[0], "/node-0/") {
		t.Fatalf("logs of ps-0: %v, want one on each host", logs)
	}
	// There is no other way than HDFS from one container's folder to another's.
	restored := regexp.MustCompile(`(?m)^restored from step (\d+)$`).FindStringSubmatch(j.read(logs[0]))
	if restored == nil {
		t.Fatalf("the new ps-0 says\n%s", j.read(logs[0]))
	}
	if step, _ := strconv.Atoi(restored[1]); step < stored {
		t.Errorf("restored from step %d, want one from %d on, which were on HDFS", step, stored)
	}
	for _, instance := range []string{"ps-0", "worker-0", "worker-1", "worker-2"} {
		for _, name := range []string{"stdout.log", "stderr.log", "agent.log", "events.jsonl"} {
			if len(j.logs(instance, name)) == 0 {
				t.Errorf("no %s of %s in YARN's log folders", name, instance)
			}
		}
	}
}

// killed ends an application by YARN's REST, as `yarn application -kill` does, and submits the run again.
func (l *lab) killed(form string) {
	j := l.submit(form, "killed-"+form, l.endless("killed-"+form)...)
	j.await("a checkpoint on HDFS", func() bool { return j.stored() > 0 })
	stored := j.stored()
	j.y.Kill(j.id)
	j.ends("KILLED")
	j.await("no process to be left", func() bool { return len(j.processes()) == 0 })
	if s := j.awaitPhase("interrupted"); s.Verdict != nil {
		j.t.Errorf("got %+v, want no verdict", s)
	}
	j.enough()
	again := l.submit(form, j.app, j.args...)
	again.ends("SUCCEEDED")
	if s := again.status(); s.Phase != "done" || s.Outcome != "succeeded" || s.Run != "r1" {
		j.t.Errorf("got %+v, want success of the same run", s)
	}
	// The first application's logs have been collected in the meantime: YARN takes files of a container's folder alone.
	said := "ps-0.stdout.log"
	j.await("the logs of "+j.id+" on HDFS", func() bool {
		text, _ := l.hdfs.HDFS("dfs", "-cat", l.collected+"/*/*/*/"+j.id+"/*").Output() // none while there is no such file
		return bytes.Contains(text, []byte(said)) && bytes.Contains(text, fmt.Appendf(nil, "checkpoint step %d\n", stored))
	})
	logs := again.logs("ps-0", "stdout.log")
	if len(logs) != 1 {
		j.t.Fatalf("logs of ps-0: %v, want one", logs)
	}
	restored := regexp.MustCompile(`(?m)^restored from step (\d+)$`).FindStringSubmatch(j.read(logs[0]))
	if restored == nil {
		j.t.Fatalf("the new ps-0 says\n%s", j.read(logs[0]))
	}
	if step, _ := strconv.Atoi(restored[1]); step < stored {
		j.t.Errorf("restored from step %d, want one from %d on", step, stored)
	}
}

// fails has a run fail for good: no process of it runs twice. A script tells a failure by its code; a service's framework
// starts agents again, which end at once, until it gives the service up.
func (l *lab) fails(form string) {
	j := l.submit(form, "fails-"+form, "--set", "worker:muster.command=exit 3", "--set", "muster.restart=never")
	if app := j.y.AwaitEnd(j.id); app.FinalStatus != "FAILED" {
		j.t.Errorf("got %+v, want FAILED", app)
	}
	s := j.status()
	if s.Phase != "done" || s.Outcome != "failed" || s.Verdict == nil || s.Verdict.Class != "app-error" || s.Generation != 1 {
		j.t.Errorf("got %+v, want a failure of the app in generation 1", s)
	}
	for _, in := range s.Instances {
		if in.Attempt > 1 {
			j.t.Errorf("%s had %d attempts, want none after the first", in.Instance, in.Attempt)
		}
		if began := len(j.logs(in.Instance, "stdout.log")); began > 1 {
			j.t.Errorf("%s began in %d containers, want one", in.Instance, began)
		}
	}
	if containers := len(j.y.LogFolders(j.id)) - 1; form == "shell" && containers != 4 { // beside the master's
		j.t.Errorf("%d containers, want 4", containers)
	}
}

// deaf is a program that hears no TERM and takes as much memory as it is told, in MB. It says when it has it.
const deaf = `exec python3 -c 'import os,signal,time
signal.signal(signal.SIGTERM,signal.SIG_IGN)
b=bytearray(%d<<20)
print("has it",flush=True)
time.sleep(1000)'`

// guarded shows what YARN's stop and its memory monitor meet: the process is outside of the container's process group, and
// what is asked for has room for the agent beside the process.
func (l *lab) guarded() {
	t := l.t
	// 140 of 160 MB, and Python's own; agent and guard are seen as 37 more.
	j := l.submit("shell", "guarded", "--set", "worker:yarn.memory=160", "--set", "ps:yarn.memory=160", "--instances", "worker=1",
		"--set", "muster.framework=none", "--set", "muster.command="+fmt.Sprintf(deaf, 140), "--set", "muster.stop.grace=30")
	j.await("the process's memory", func() bool {
		logs := j.logs("worker-0", "stdout.log")
		return len(logs) == 1 && strings.Contains(j.read(logs[0]), "has it\n")
	})
	var agents, others []int
	groups := map[int]bool{}
	for _, pid := range j.processes() {
		line := j.read(fmt.Sprintf("/proc/%d/cmdline", pid))
		group, err := syscall.Getpgid(pid)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(line, "/muster\x00agent\x00") && !strings.HasPrefix(line, "/bin/sh"):
			agents = append(agents, pid)
			groups[group] = true
		case strings.HasPrefix(line, "python3\x00"):
			others = append(others, group)
		}
	}
	if len(agents) != 2 || len(others) != 2 {
		t.Fatalf("agents %v, processes in groups %v, want 2 of each", agents, others)
	}
	for _, group := range others {
		if groups[group] {
			t.Errorf("a process is in its container's group %d, which YARN kills", group)
		}
	}
	// After five looks of YARN's monitor all are there still, with as much as they may have.
	before := j.looks()
	j.await("YARN's monitor to look at all of them five times", func() bool {
		n := 0
		for container, looks := range j.looks() {
			if looks >= before[container]+5 {
				n++
			}
		}
		return n >= len(agents)+1 // and at the master
	})
	if s := j.status(); s.Phase != "running" || s.Generation != 1 {
		t.Errorf("got %+v, want it to run in generation 1: the memory is what was asked for", s)
	}
	// An agent that hears nothing is killed with its group after 250 ms; its guard ends the process.
	for _, pid := range agents {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	j.y.Kill(j.id)
	j.ends("KILLED")
	j.await("no process to be left", func() bool { return len(j.processes()) == 0 })
}

var look = regexp.MustCompile(`Resource usage of ProcessTree \d+ for container-id (container_\w+):`)

// looks is how often YARN's monitors have looked at each container of the job.
func (j *job) looks() map[string]int {
	logs, err := filepath.Glob(filepath.Join(j.y.Dir, "logs", "*.log"))
	if err != nil {
		j.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, path := range logs {
		for _, m := range look.FindAllStringSubmatch(j.read(path), -1) {
			if strings.Contains(m[1], strings.TrimPrefix(j.id, "application")) {
				counts[m[1]]++
			}
		}
	}
	return counts
}

// Over its own limit a process is ended by its agent, for that reason, before YARN's monitor takes the container.
func (l *lab) overLimit() {
	j := l.submit("shell", "over", "--set", "ps:yarn.memory=128", "--set", "worker:yarn.memory=128", "--instances", "worker=1", "--set", "muster.framework=none",
		"--set", "muster.command="+fmt.Sprintf(deaf, 130), "--set", "muster.restart=never")
	j.ends("FAILED")
	if s := j.status(); s.Verdict == nil || s.Verdict.Class != "out-of-memory" {
		j.t.Errorf("got %+v, want a verdict of out-of-memory", s)
	}
	masters := 0
	for _, folder := range j.y.LogFolders(j.id) {
		files, err := filepath.Glob(filepath.Join(folder, "AppMaster.stderr"))
		if err != nil {
			j.t.Fatal(err)
		}
		for _, path := range files {
			masters++
			if strings.Contains(j.read(path), "' memory limit. ") {
				j.t.Errorf("YARN's monitor was faster:\n%s", j.read(path))
			}
		}
	}
	if masters != 1 {
		j.t.Errorf("%d logs of masters, want one, which tells who ended the containers", masters)
	}
}
