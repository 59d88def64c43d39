package scripts_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// once has what START leaves behind go on when the agent has taken it in its attempt: one that is gone before is told as such.
const once = `until [ $(grep -c 'has left the process behind' $MUSTER_LOG_DIR/agent.log) -ge $MUSTER_ATTEMPT ]; do sleep 0.1; done`

// slow is the time of each command, in seconds, where one that hangs comes after others that have to be done: on busy cores a Python
// alone takes two to begin.
const slow = 6

// What may go wrong with a package's scripts ends with the words that help, the class and the exit code, and nothing is
// left of it. In a cause * stands for anything, LOG for the instance's log folder, OWN for its own.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		methods string
		timeout int
		config  settings
		class   registry.Class // empty: it succeeds
		code    int
		cause   string
	}{
		"INSTALL exits with 3": {
			methods: `
    def install(self, env):
        print("looking for room")
        sys.stderr.write("first words\nthe disk is full\n")
        sys.exit(3)
`,
			class: registry.ClassApp, code: 3,
			cause: "worker-0 exited with 3: INSTALL of scripts/worker.py: the disk is full (LOG/errors-1.txt)",
		},
		"INSTALL hangs": {
			methods: `
    def install(self, env):
        subprocess.Popen(["setsid", "sleep", "1000"])
        subprocess.Popen(["sh", "-c", "setsid sleep 1000 & sleep 1000"])
        time.sleep(1000)
`,
			timeout: 2, class: registry.ClassTimeout, code: 76,
			cause: "worker-0 failed: did not start: INSTALL of scripts/worker.py: INSTALL was at work for 2s and was ended (LOG/errors-1.txt)",
		},
		"a script for Python 2": {
			methods: `
    def start(self, env):
        print "x"
`,
			class: registry.ClassApp, code: 1,
			cause: "worker-0 exited with 1: INSTALL of scripts/worker.py: package/scripts/worker.py:*: `print \"x\"` does not run on Python 3: write print(…); muster package modernize DIR --write does it (LOG/errors-1.txt)",
		},
		"START exits with 4": {
			methods: `
    def start(self, env):
        sys.stderr.write("no such table\n")
        sys.exit(4)
`,
			class: registry.ClassApp, code: 4,
			cause: "worker-0 exited with 4: no such table",
		},
		"START leaves nothing alive": {
			methods: `
    def start(self, env):
        p = subprocess.Popen(["true"])
        p.wait()
        write_pid(p.pid)
    def status(self, env):
        check_process_status(pid_path())
`,
			class: registry.ClassApp, code: 1,
			cause: "worker-0 failed: START ended with 0 and left no process: process * of OWN/app/run/component.pid is gone, or START did not start it",
		},
		"START neither ends nor serves": {
			methods: `
    def start(self, env):
        time.sleep(1000)
    def status(self, env):
        check_process_status(pid_path())
`,
			timeout: slow, class: registry.ClassTimeout, code: 76,
			cause: "worker-0 was killed by SIGKILL: START of scripts/worker.py was neither done nor serving after 6 s",
		},
		"STATUS hangs": {
			methods: `
    def start(self, env):
        leave("exec sleep 1000")
    def status(self, env):
        time.sleep(1000)
`,
			timeout: slow, class: registry.ClassApp, code: 137,
			cause: "worker-0 was killed by SIGKILL: STATUS failed 2 times: STATUS was at work for 6s and was ended",
		},
		"STATUS says no": {
			methods: `
    def start(self, env):
        leave("exec sleep 1000")
    def status(self, env):
        raise Fail("the index is broken")
`,
			class: registry.ClassApp, code: 137,
			cause: "worker-0 was killed by SIGKILL: STATUS failed 2 times: worker.py: STATUS: the index is broken (worker.py, line 21)",
		},
		"the daemon exits with 7": {
			methods: `
    def start(self, env):
        leave("` + once + `; exit 7")
    def status(self, env):
        check_process_status(pid_path())
`,
			class: registry.ClassApp, code: 7,
			cause: "worker-0 exited with 7",
		},
		"the daemon exits with 0": {
			methods: `
    def start(self, env):
        leave("` + once + `; exit 0")
    def status(self, env):
        check_process_status(pid_path())
`,
		},
		"the script is the job": {
			methods: `
    def start(self, env):
        print("learnt")
`,
		},
		"the script is the job and leaves a helper": {
			methods: `
    def start(self, env):
        subprocess.Popen(["sleep", "1000"])
    def status(self, env):
        raise ComponentIsNotRunning()
`,
			config: settings{"muster.up": "start"},
		},
		"the script is the job and has written its own pid": {
			methods: `
    def start(self, env):
        write_pid(os.getpid())
    def status(self, env):
        check_process_status(pid_path())
`,
		},
		"the budget is spent": {
			methods: `
    def start(self, env):
        leave("` + once + `; exit 9")
    def status(self, env):
        check_process_status(pid_path())
`,
			config: settings{"muster.restart": "instance", "muster.restart.budget": "2"},
			class:  registry.ClassApp, code: 9,
			cause: "worker-0 exited with 9 after 2 restarts in 300 s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := c.timeout
			if timeout == 0 {
				timeout = 20
			}
			j := newSmall(t, nil, small{parts: []part{{script: c.methods, timeout: timeout}}, config: c.config})
			e := j.run("--engine", "process")
			if c.class == "" {
				e.succeeds(t)
			} else {
				e.fails(t, c.class, c.code, strings.NewReplacer("LOG", j.log("worker-0", "."), "OWN", j.own("worker-0", ".")).Replace(c.cause))
			}
			j.nothingLeft()
		})
	}
}

// An INSTALL that the kernel ends at the limit of memory is told as START is: with the limit, and what to raise.
func TestInstallOutOfMemory(t *testing.T) {
	need.Root(t)
	for _, engine := range []string{"container", "cgroup"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newSmall(t, nil, small{
				parts: []part{{timeout: 60, script: `
    def install(self, env):
        b"x" * (100 << 20)
    def start(self, env):
        pass
`}},
			})
			e := j.run("--engine", engine, "--set", "worker:yarn.memory=24")
			e.fails(t, registry.ClassOOM, 128+int(syscall.SIGKILL), "worker-0 ran out of memory: INSTALL of scripts/worker.py: "+
				"killed at the limit of 24 MB, peak * MB (cgroup *) ("+j.log("worker-0", "errors-1.txt")+")")
			if !strings.Contains(e.Advice, "raise yarn.memory of worker") {
				t.Errorf("advice %q, want what to set", e.Advice)
			}
			if len(e.Instances) == 0 {
				t.Fatal("no instance has a result")
			}
			if x := e.Instances[0].ExitInfo; x == nil || !x.OOM || x.Limit != 24<<20 {
				t.Errorf("exit %+v, want out of memory at 24 MB", x)
			}
		})
	}
}
