package scripts_test

import (
	"strings"
	"testing"
)

// What is told to stop has its grace: neither does STATUS, which hears that it serves no more, cut it short, nor the end of
// the process STOP, which has to clear up after it.
func TestStopTakesItsTime(t *testing.T) {
	t.Parallel()
	j := worker(t, `
    def mark(self, name):
        with open(name, "w") as f:
            f.write("x")
    def start(self, env):
        leave("exec python3 " + os.path.join(os.path.dirname(os.path.abspath(__file__)), "draining.py"))
    def status(self, env):
        if os.path.exists("draining"):
            with open("asked", "a") as f:
                f.write("x")
            raise Fail("it drains")
        check_process_status(pid_path())
    def stop(self, env):
        pid = int(open(pid_path()).read())
        self.mark("draining")
        os.kill(pid, signal.SIGUSR1)
        while os.path.exists("/proc/%d" % pid):
            time.sleep(0.05)
        time.sleep(0.5)
        self.mark("cleared")
`, settings{"muster.stop.grace": "40s"})
	j.write("package/scripts/draining.py", `
import signal, sys, time
def drain(*_):
    time.sleep(3) # several times as long as STATUS takes
    with open("drained", "w") as f:
        f.write("x")
    sys.exit(0)
signal.signal(signal.SIGUSR1, drain)
while True:
    signal.pause()
`)
	p := j.begin()
	j.sees("worker-0", "running", 1)
	j.notes("worker-0", "START has left the process behind")
	j.stop(p)
	for _, name := range []string{"drained", "cleared"} {
		if read(j.own("worker-0", name)) == "" {
			t.Errorf("%s is missing: its stop was cut short", name)
		}
	}
	if said := read(j.own("worker-0", "asked")); len(said) > 1 {
		t.Errorf("STATUS was asked %d times while it stopped", len(said))
	}
}

// What no pid file names has no main process: the stop's signal goes to all that START has left.
func TestStopOfWhatNoPIDFileNames(t *testing.T) {
	t.Parallel()
	j := worker(t, `
    def start(self, env):
        subprocess.Popen(["bash", "-c", "trap 'echo told >told; exit' TERM; echo x >ready; while :; do sleep 0.1; done"], start_new_session=True)
    def status(self, env):
        if not os.path.exists("ready"):
            raise ComponentIsNotRunning()
`, settings{"muster.stop.grace": "40s"})
	p := j.begin()
	j.notes("worker-0", "they are the instance")
	j.stop(p)
	if read(j.own("worker-0", "told")) == "" {
		t.Error("it was killed and not asked")
	}
}

// INSTALL may take its time: who asks sees what an instance is at, and a stop does not wait for it.
func TestStopOfINSTALL(t *testing.T) {
	t.Parallel()
	j := worker(t, `
    def install(self, env):
        subprocess.Popen(["setsid", "sleep", "1000"])
        time.sleep(1000)
`, nil)
	p := j.begin()
	await(t, "INSTALL as what it is at", func() bool {
		out, _, _ := j.verb("status", j.app)
		return strings.Contains(out, "INSTALL")
	})
	was := j.remains("worker-0")
	j.stop(p)
	j.nothingLeft(was...)
}
