package confine_test

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// look tells what a process finds of itself: descriptors, capabilities, its place among processes.
const look = `ls -l /proc/self/fd | grep -c ' [0-9]* -> ' | xargs echo descriptors
echo cwd $(readlink /proc/self/cwd); echo oom $(cat /proc/self/oom_score_adj); grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -d ':'; echo umask $(umask)
echo tty $(tty)`

// containerd's default set of capabilities (containerd, oci/spec.go: defaultUnixCaps).
const usualCaps = 0xa80425fb

// What a process finds of itself is its own: no descriptor of ours, no capability beyond the usual, no score of ours.
func TestInside(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, look, nil)
			out := strings.ReplaceAll(j.succeeds("--engine", engine), "\t", " ")
			// ls has the folder open too
			has(t, out, settings{"descriptors": "4", "cwd": j.own(""), "oom": "0", "tty": "not a tty"})
			for _, set := range []string{"CapEff", "CapBnd"} {
				text, _ := lineOf(out, set)
				caps, err := strconv.ParseUint(text, 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				if beyond := caps &^ usualCaps; engine == "container" && beyond != 0 {
					t.Errorf("%s has %x beyond the usual", set, beyond)
				}
			}
			if engine == "container" {
				has(t, out, settings{"NoNewPrivs": "1"})
			}
		})
	}
}

// The app is what the kernel ends first: its score is the usual one, its agent's is below where it may lower it.
func TestOOMScores(t *testing.T) {
	need.Root(t)
	want := "0\n"
	if exec.CommandContext(t.Context(), "sh", "-c", "echo -500 >/proc/self/oom_score_adj").Run() == nil {
		want = "-500\n"
	} else {
		t.Log("without CAP_SYS_RESOURCE nobody here may lower a score")
	}
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "cat /proc/self/oom_score_adj; mkfifo hold; echo here; cat hold", nil)
			p := j.begin("--engine", engine)
			j.says("here")
			if got := read(fmt.Sprintf("/proc/%d/oom_score_adj", j.remains().Pid)); got != want {
				t.Errorf("the agent has the score %q, want %q", got, want)
			}
			has(t, j.log("stdout.log"), settings{"0": ""})
			j.release()
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// Roots of the host: read-only with a /tmp of its own, or private writes over all of it; shared memory has its size.
func TestRoots(t *testing.T) {
	need.Root(t)
	const write = `for f in /usr/confined /etc/confined /tmp/confined /dev/shm/confined; do case $(touch $f 2>&1) in "") echo $f written;; *Read-only*) echo $f refused;; esac; done; df -m --output=size /dev/shm | tail -1`
	for root, want := range map[string]settings{
		"read-only": {"/usr/confined": "refused", "/etc/confined": "refused", "/tmp/confined": "written", "/dev/shm/confined": "written"},
		"overlay":   {"/usr/confined": "written", "/etc/confined": "written", "/tmp/confined": "written", "/dev/shm/confined": "written"},
	} {
		t.Run(root, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, write, settings{"muster.root": root, "muster.shm": "8"})
			if root == "overlay" {
				j.run("--engine", "container").fails(t, registry.ClassNotPermitted, 77,
					"muster.root=overlay: the host's files belong to nobody")
				j.app += "x"
				j.hostIDs()
			}
			out := j.succeeds("--engine", "container", "--require-limits")
			has(t, out, want)
			if !strings.HasSuffix(out, " 8\n") {
				t.Errorf("the size of /dev/shm is not 8 MB:\n%s", out)
			}
			for path := range want {
				if !absent(path) {
					t.Errorf("%s is on the host", path)
				}
			}
		})
	}
}

// A restart in place: nothing of the first attempt is there in the second, in no session and in no folder of the kernel's.
func TestRestarts(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, `if [ $MUSTER_ATTEMPT = 1 ]; then setsid sleep 600 & echo $! >stray; sleep 600 & kill -BUS $$; fi
n=0; for e in /proc/[0-9]*/environ; do tr '\0' '\n' <$e 2>/dev/null | grep -q "^MUSTER_APP_ID=$MUSTER_APP_ID$" && tr '\0' ' ' <${e%environ}cmdline | grep -q '^sleep 600' && n=$((n+1)); done; echo strays $n`,
				settings{"muster.restart": "instance"})
			e := j.run("--engine", engine)
			if e.code != 0 || e.Restarts != 1 {
				t.Errorf("exit code %d after %d restarts: %s; want 0 after 1", e.code, e.Restarts, e.Cause)
			}
			has(t, j.log("stdout.log"), settings{"strays": "0"})
		})
	}
}

// A signal by muster reaches the app's own process, in whatever namespace that is.
func TestSignals(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, `trap 'echo heard; exit 3' USR1; mkfifo hold; echo here; while :; do read x <>hold; done`, nil)
			p := j.begin("--engine", engine)
			j.says("here")
			if _, said, code := j.verb("signal", j.app+"/worker-0", "USR1"); code != 0 {
				t.Errorf("muster signal: %d: %s", code, said)
			}
			j.end(p).fails(t, registry.ClassApp, 3)
			has(t, j.log("stdout.log"), settings{"heard": ""})
		})
	}
}

// Who asks for no GPU has none, whatever the host has.
func TestNoneAskedNoneHad(t *testing.T) {
	need.Root(t)
	for _, engine := range engines()[:2] {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			g := newGPUs(t, nvmltest.Host{})
			node := fmt.Sprintf("/dev/nvidia%d", g.first)
			want := map[string]string{"container": "ENOENT", "cgroup": "EPERM"}[engine]
			j := g.job(program("devices", node, "/dev/nvidiactl"), nil)
			has(t, j.succeeds("--engine", engine), settings{node: want, "/dev/nvidiactl": want})
			j = g.job(program("devices", fmt.Sprintf("195:%d", g.first), "195:255"), nil).hostIDs()
			has(t, j.succeeds("--engine", engine), settings{fmt.Sprintf("open-195:%d", g.first): "EPERM", "open-195:255": "EPERM"})
		})
	}
}

// A device that is not there is missed in words.
func TestNoRDMA(t *testing.T) {
	need.Root(t)
	t.Parallel()
	if len(glob(t, "/dev/infiniband/*")) > 0 {
		need.Skip(t, "there are RDMA devices here")
	}
	e := newJob(t, "true", settings{"muster.rdma": "true"}).run()
	if e.code == 0 || !strings.Contains(e.Cause, "muster.rdma: no device in /dev/infiniband; want a host with one") {
		t.Errorf("exit code %d: %s; want what is missing", e.code, e.Cause)
	}
}
