package pai_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// hold takes n ports in a row that nobody has, outside of what muster takes and of what the kernel gives away. They are free
// again when the listeners are closed.
func hold(t *testing.T, n int) (first int, held []net.Listener) {
	t.Helper()
	const from, to = 30000, 32700
	for range 100 {
		first, held = from+rand.IntN(to-from-n), nil
		for port := first; port < first+n; port++ {
			l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
			if err != nil {
				break
			}
			t.Cleanup(func() { _ = l.Close() }) // it may have been closed
			held = append(held, l)
		}
		if len(held) == n {
			return first, held
		}
	}
	t.Fatal("no ports are free")
	return 0, nil
}

// free are two such ports, the first of them.
func free(t *testing.T) int {
	t.Helper()
	first, held := hold(t, 2)
	for _, l := range held {
		_ = l.Close()
	}
	return first
}

// portsJob is a job of so many tasks that write their ports; the label web has two from begin on.
func portsJob(t *testing.T, tasks, begin int, then string) *job {
	t.Helper()
	return newJob(t, fmt.Sprintf(`{
		"jobName": "ports", "image": "none", "jobEnvs": {},
		"taskRoles": [{"name": "task", "taskNumber": %d, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0,
			"portList": [{"label": "any", "beginAt": 0, "portNumber": 1}, {"label": "web", "beginAt": %d, "portNumber": 2}],
			"command": "echo $PAI_CONTAINER_HOST_PORT_LIST; echo $PAI_CONTAINER_HOST_web_PORT_LIST; %s"}]
	}`, tasks, begin, then))
}

// Ports from beginAt on are these and no others, and are named first.
func TestFixedPorts(t *testing.T) {
	t.Parallel()
	begin := free(t)
	j := portsJob(t, 1, begin, "true")
	j.onHost().is(t, "succeeded", 0, 1)
	fixed := fmt.Sprintf("%d,%d", begin, begin+1)
	lines := j.printed("task-0")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "web:"+fixed+";any:") || strings.Count(lines[0], ";") != 4 || lines[1] != fixed {
		t.Errorf("wrote %q, want web:%s; first, and any, http and ssh", lines, fixed)
	}
}

// Two tasks on one host cannot have the same port. A run, whose tasks are all on this host, says so before anything starts.
func TestFixedPortsOfTwoTasks(t *testing.T) {
	t.Parallel()
	begin := free(t)
	j := portsJob(t, 2, begin, "true")
	e := j.onHost()
	want := fmt.Sprintf("job.json#/taskRoles/0/portList/1: got port %d for task-0 and for task-1, want a port of its own for each instance on this host; in a job file that is beginAt 0\n", begin)
	if e.code != 65 || !strings.HasSuffix(e.said, want) || j.log("task-0") != "" {
		t.Errorf("exit code %d, said %q, want 65 and %q", e.code, e.said, want)
	}
}

// An agent whose port somebody else of its host has says which one at once, and leaves the task to another host.
func TestFixedPortIsTaken(t *testing.T) {
	t.Parallel()
	consul := consulserver.Start(t, consulserver.Options{})
	begin, held := hold(t, 2)
	_ = held[0].Close() // the first could be had
	j := portsJob(t, 1, begin, "true")
	began := time.Now()
	cmd := j.command("agent", "--app", j.file, "--app-id", j.app, "--component", "task", "--index", "0", "--registry", consul.URL(), "--host", "127.0.0.1",
		"--work-dir", j.work, "--set", "global:muster.image=host")
	out, _ := cmd.CombinedOutput()
	want := fmt.Sprintf("port port.web.2: no port is free in %d (1 × address already in use)", begin+1)
	if code := cmd.ProcessState.ExitCode(); code != 75 || !strings.Contains(string(out), want) || time.Since(began) > watchdog/2 {
		t.Errorf("exit code %d after %s, said %s, want 75 in seconds and %q", code, time.Since(began), out, want)
	}
	if log := read(filepath.Join(j.work, "log", "task-0", "agent.log")); !strings.Contains(log, want+" (not counted)") {
		t.Errorf("the job is not formed anew without counting:\n%s", log)
	}
	j.nothingLeft()
}
