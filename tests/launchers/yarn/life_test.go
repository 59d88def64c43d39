package yarn_test

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// keeping has checkpoints go to HDFS.
func (l *lab) keeping(args ...string) []string {
	return append([]string{"--set", "muster.checkpoint.sync=" + l.dir + "/kept"}, args...)
}

// lasting is a training of half a minute, which stores something each second.
var lasting = []string{"--set", "site.global.train.steps=300", "--set", "site.global.train.pace=0.1", "--set", "site.global.train.checkpoint.every=10"}

func TestYARN(t *testing.T) {
	l := newLab(t)
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
			l.of(t).fails()
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

// apart submits a run of which ps-0 is on the second host alone, and the rest, the master too, on the first.
func (l *lab) apart(form, app string) *job {
	l.t.Helper()
	l.y.Resize(1, 0)
	submitted := l.submitting(form, app, l.keeping(append(lasting, "--lost-mass", "1m")...)...)
	l.await("its master", func() bool {
		return slices.ContainsFunc(l.y.Applications(), func(a hadoop.Application) bool { return a.RunningContainers == 1 })
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
	return j
}

// hostLost kills the host of ps-0, its NodeManager and all its containers, in the middle of the training.
func (j *job) hostLost() {
	t := j.t
	j.await("a checkpoint on HDFS", func() bool { return j.stored() > 0 })
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
	j := l.submit(form, "killed-"+form, l.keeping(lasting...)...)
	j.await("a checkpoint on HDFS", func() bool { return j.stored() > 0 })
	stored := j.stored()
	j.y.Kill(j.id)
	j.ends("KILLED")
	j.await("no process to be left", func() bool { return len(j.processes()) == 0 })
	if s := j.awaitPhase("interrupted"); s.Verdict != nil {
		j.t.Errorf("got %+v, want no verdict", s)
	}
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

// fails has a run fail for good: no process of it runs twice.
func (l *lab) fails() {
	j := l.submit("shell", "fails", "--set", "worker:muster.command=exit 3", "--set", "muster.restart=never")
	j.ends("FAILED")
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
	containers := len(j.y.LogFolders(j.id)) - 1 // the master's
	if containers != 4 {
		j.t.Errorf("%d containers, want 4: a script tells a failure by its code", containers)
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
		case strings.HasPrefix(line, "./muster\x00agent\x00"):
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
	// YARN's monitor looks each second: after five looks all are there still, with as much as they may have.
	time.Sleep(5 * time.Second)
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

// Over its own limit a process is ended by its agent, for that reason, before YARN's monitor takes the container.
func (l *lab) overLimit() {
	j := l.submit("shell", "over", "--set", "ps:yarn.memory=128", "--set", "worker:yarn.memory=128", "--instances", "worker=1", "--set", "muster.framework=none",
		"--set", "muster.command="+fmt.Sprintf(deaf, 130), "--set", "muster.restart=never")
	j.ends("FAILED")
	if s := j.status(); s.Verdict == nil || s.Verdict.Class != "out-of-memory" {
		j.t.Errorf("got %+v, want a verdict of out-of-memory", s)
	}
	for _, folder := range j.y.LogFolders(j.id) {
		files, _ := filepath.Glob(filepath.Join(folder, "AppMaster.stderr"))
		for _, path := range files {
			if strings.Contains(j.read(path), "' memory limit. ") {
				j.t.Errorf("YARN's monitor was faster:\n%s", j.read(path))
			}
		}
	}
}
