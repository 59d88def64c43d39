package scripts_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// engines are those that root has on a host where cgroups can be written.
var engines = []string{"container", "cgroup", "process"}

// A process that has left its session and its parents behind is the instance all the same.
func TestDoubleFork(t *testing.T) {
	need.Root(t)
	const forks = `
    def start(self, env):
        if os.fork() == 0:
            os.setsid()
            if os.fork() > 0:
                os._exit(0)
            write_pid(os.getpid())
            os.execvp("sleep", ["sleep", "1000"])
        os.wait()
        while not os.path.exists(pid_path()) or not os.path.getsize(pid_path()):
            time.sleep(0.01)
    def status(self, env):
        check_process_status(pid_path())
`
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := worker(t, forks, settings{"muster.restart": "instance"})
			p := j.begin("--engine", engine)
			j.notes("worker-0", "START has left the process behind")
			was := j.remains("worker-0")
			j.must(syscall.Kill(j.daemon("worker-0", "sleep 1000"), syscall.SIGTERM))
			if cause := j.sees("worker-0", "backoff", 1).Cause; cause != "killed by SIGTERM; restarting 1/5" {
				t.Errorf("started again because of %q", cause)
			}
			j.sees("worker-0", "running", 2)
			j.daemon("worker-0", "sleep 1000")
			j.stop(p)
			j.nothingLeft(was...)
		})
	}
}

// What START leaves behind dies with its agent; the next agent starts it again.
func TestAgentKilled(t *testing.T) {
	need.Root(t)
	const leaves = `
    def start(self, env):
        leave("exec sleep 1000")
    def status(self, env):
        check_process_status(pid_path())
`
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := worker(t, leaves, settings{"muster.restart": "instance"})
			p := j.begin("--engine", engine)
			j.notes("worker-0", "START has left the process behind")
			was, pid := j.remains("worker-0"), j.daemon("worker-0", "sleep 1000")
			j.must(syscall.Kill(was[0].Pid, syscall.SIGKILL))
			gone(t, pid)
			j.sees("worker-0", "running", 2)
			if next := j.daemon("worker-0", "sleep 1000"); next == pid {
				t.Errorf("process %d is still there", next)
			}
			was = append(was, j.remains("worker-0")...)
			j.stop(p)
			j.nothingLeft(was...)
		})
	}
}

// A pid file is written by the package, and may say anything: only what START has left behind is taken, and nothing is
// waited for. One that names nothing of START's does not count: what START has left is the instance, and its end is an
// exit, though STATUS says yes throughout.
func TestPIDFiles(t *testing.T) {
	need.Root(t)
	const start = `
    def start(self, env):
        leave("exec sleep 1000")
        path = pid_path()
`
	const status = `
    def status(self, env):
        pass
`
	const number, none = "pid file names a process that has ended, or is none of START's: it does not count", "pid file has no number"
	for name, c := range map[string]struct {
		spoil   string // what START does to its pid file
		noted   string // in the agent's log, beside what the instance is
		engines []string
	}{
		"a link":          {"os.rename(path, path + '.real'); os.symlink(path + '.real', path)", "", engines[2:]},
		"a fifo":          {"os.remove(path); os.mkfifo(path)", "", engines[2:]},
		"a folder":        {"os.remove(path); os.mkdir(path)", "", engines[2:]},
		"garbage":         {"write_pid('seventeen')", none, engines[2:]},
		"nothing":         {"write_pid('')", none, engines[2:]},
		"pid 1":           {"write_pid(1)", number, engines},
		"the agent's own": {"write_pid(open('/proc/%d/stat' % os.getppid()).read().rsplit(')', 1)[1].split()[1])", number, engines[1:]},
		"the guard's":     {"write_pid(os.getppid())", number, engines},
		"nobody's":        {"p = subprocess.Popen(['true']); p.wait(); write_pid(p.pid)", number, engines[2:]},
	} {
		for _, engine := range c.engines {
			t.Run(name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				j := worker(t, start+"        "+c.spoil+status, nil)
				p := j.begin("--engine", engine)
				j.notes("worker-0", c.noted)
				j.notes("worker-0", "they are the instance")
				j.must(syscall.Kill(j.daemon("worker-0", "sleep 1000"), syscall.SIGKILL))
				j.end(p).fails(t, registry.ClassApp, 137, "worker-0 was killed by SIGKILL"+startedSo)
				j.nothingLeft()
			})
		}
	}
}

// The process of another instance is nobody's to take: whoever names it keeps what it has left itself.
func TestPIDOfAnother(t *testing.T) {
	t.Parallel()
	j := newSmall(t, nil, small{parts: []part{{instances: 2, timeout: 20, script: `
    def start(self, env):
        leave("exec sleep 1000")
        if os.environ["MUSTER_INDEX"] == "1":
            other = pid_path().replace("worker-1", "worker-0")
            while not os.path.exists(other) or not os.path.getsize(other):
                time.sleep(0.01)
            write_pid(open(other).read())
    def status(self, env):
        pass
`}}})
	p := j.begin("--engine", "process")
	j.notes("worker-1", "they are the instance")
	j.must(syscall.Kill(j.daemon("worker-1", "sleep 1000"), syscall.SIGKILL))
	j.end(p).fails(t, registry.ClassApp, 137, "worker-1 was killed by SIGKILL"+startedSo)
	j.nothingLeft()
}

// STOP that hangs has the grace; then all of it is ended, and what it has put into sessions of its own.
func TestStopHangs(t *testing.T) {
	need.Root(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := worker(t, `
    def start(self, env):
        leave("trap '' TERM; while :; do sleep 1000; done")
    def stop(self, env):
        subprocess.Popen(["setsid", "sleep", "1000"])
        print("stopping", flush=True)
        time.sleep(1000)
    def status(self, env):
        check_process_status(pid_path())
`, settings{"muster.stop.grace": "5"})
			p := j.begin("--engine", engine)
			j.notes("worker-0", "START has left the process behind")
			was := j.remains("worker-0")
			j.stop(p)
			if out := read(j.log("worker-0", "output-3.txt")); out != "stopping\n" {
				t.Errorf("STOP said %q", out)
			}
			j.nothingLeft(was...)
		})
	}
}

// STOP that ends its process itself has the time to clear up after it.
func TestStopClearsUp(t *testing.T) {
	need.Root(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := worker(t, `
    def start(self, env):
        leave("exec sleep 1000")
    def stop(self, env):
        pid = int(open(pid_path()).read())
        os.kill(pid, signal.SIGTERM)
        while os.path.exists("/proc/%d" % pid):
            time.sleep(0.01)
        time.sleep(0.5)
        print("cleared up", flush=True)
    def status(self, env):
        check_process_status(pid_path())
`, nil)
			p := j.begin("--engine", engine)
			j.notes("worker-0", "START has left the process behind")
			was := j.remains("worker-0")
			j.stop(p)
			if out := read(j.log("worker-0", "output-3.txt")); out != "cleared up\n" {
				t.Errorf("STOP said %q", out)
			}
			j.nothingLeft(was...)
		})
	}
}

// What START leaves behind when it was asked to stop already is asked too, and has its grace.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	j := worker(t, `
    def start(self, env):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        leave("exec python3 " + os.path.join(os.path.dirname(os.path.abspath(__file__)), "obeys.py"))
        while not os.path.exists("go"):
            time.sleep(0.05)
`, settings{"muster.stop.grace": "20"})
	j.write("package/scripts/obeys.py", `
import signal, sys
def obey(*_):
    open("heard", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, obey)
open("ready", "w").close()
while True:
    signal.pause()
`)
	p := j.begin("--engine", "process")
	await(t, "the daemon", func() bool { return !absent(j.own("worker-0", "ready")) })
	stop := j.start("stop", j.app)
	j.notes("worker-0", "to=stopping")
	await(t, "the end of STOP", func() bool { return !absent(j.log("worker-0", "structured-out-3.json")) })
	j.must(os.WriteFile(j.own("worker-0", "go"), nil, 0o644))
	if code := stop.wait(); code != 0 {
		t.Errorf("muster stop ended with %d", code)
	}
	if e := j.end(p); e.Outcome != "stopped" || absent(j.own("worker-0", "heard")) {
		t.Errorf("%s, and the daemon was asked: %t; want stopped, true", e.Outcome, !absent(j.own("worker-0", "heard")))
	}
	j.nothingLeft()
}

// An instance starts when those that it requires are up, and not before.
func TestOrder(t *testing.T) {
	need.Root(t)
	for _, engine := range engines[1:] {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newSmall(t, nil, small{
				parts: []part{
					{name: "front", script: `
    def start(self, env):
        leave("exec sleep 1000")
    def status(self, env):
        check_process_status(pid_path())
`, timeout: 60},
					{name: "store", instances: 2, script: `
    def start(self, env):
        while not os.path.exists("go"):
            time.sleep(0.05)
        leave("exec sleep 1000")
    def status(self, env):
        check_process_status(pid_path())
`, timeout: 60},
				},
				more: object{"commandOrders": []object{{"command": "front-START", "requires": "store-STARTED"}}},
			})
			p := j.begin("--engine", engine)
			waits := func() {
				t.Helper()
				await(t, "front-0 waits for the stores", func() bool {
					front := j.status().instance(t, "front-0")
					return front.Phase == "waiting" && front.Cause == "waiting for store to have started: store-0, store-1"
				})
			}
			release := func(store string) {
				t.Helper()
				j.must(os.WriteFile(j.own(store, "go"), nil, 0o644))
				j.notes(store, "START has left the process behind")
			}
			j.sees("front-0", "waiting", 0)
			waits()
			release("store-1")
			waits()
			release("store-0")
			j.notes("front-0", "START has left the process behind")
			j.stop(p)
			j.nothingLeft()
		})
	}
}
