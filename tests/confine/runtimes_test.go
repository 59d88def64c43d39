package confine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// The runtimes that jobs are written for run under the default filter and capabilities, in each engine, as they do
// without.
func TestRuntimesUnderTheDefaultFilter(t *testing.T) {
	need.Root(t)
	files := "app/definition/package/files/"
	for _, r := range []struct {
		name, program, command string
		want                   map[string]string
	}{
		{"python", "python3", "exec python3 " + files + "runtime.py", map[string]string{
			"threads": "285", "fork": "285", "spawn": "285", "forkserver": "285", "subprocess": "ran", "asyncio": "async",
			"socketpair": "x", "affinity": "True",
		}},
		{"node", "node", "cp " + files + "runtime.js . && exec node runtime.js", map[string]string{
			"worker": "42", "file": "written", "child": "ran",
		}},
		{"java", "java", "cp " + files + "Runtime.java . && exec java -XX:+UseNUMA Runtime.java", map[string]string{
			"streams": "499500", "threads": "42", "child": "ran", "map": "4096",
		}},
		{"tensorflow", "", "", map[string]string{"sum": "45.0"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			if r.name == "tensorflow" {
				r.program, r.command = tensorflow(t)
			}
			if _, err := exec.LookPath(r.program); err != nil {
				need.Skip(t, err.Error())
			}
			for _, engine := range engines() {
				t.Run(engine, func(t *testing.T) {
					t.Parallel()
					j := newJob(t, `grep -q '^Seccomp:.2' /proc/self/status && echo filtered; `+r.command, settings{"yarn.memory": "2000"})
					has(t, j.succeeds("--engine", engine), with(r.want, settings{"filtered": ""}))
				})
			}
		})
	}
}

// tensorflow is the interpreter that the tests of TensorFlow have made, and a program for it.
func tensorflow(t *testing.T) (python, command string) {
	t.Helper()
	home, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	python = filepath.Join(home, "muster", "venv-tensorflow-2.15.1", "bin", "python")
	const program = `import tensorflow as tf; d = tf.data.Dataset.range(10).map(lambda x: tf.cast(x, tf.float32), num_parallel_calls=2); ` +
		`print("sum", float(sum(d)))`
	return python, "exec " + python + " -c '" + program + "'"
}

// muster runs inside of an instance of muster: the agent's own calls are permitted too.
func TestMusterInsideOfMuster(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			inner := newJob(t, "echo inner $(id -u)", nil)
			j := newJob(t, strings.Join([]string{
				"HOME=$PWD XDG_RUNTIME_DIR=$PWD MUSTER_AGENT_STATE_DIR=$PWD/s", muster, "run", inner.dir, "--app-id", inner.app, "--work-dir $PWD/w",
			}, " "), settings{"yarn.memory": "512"})
			policy := j.policy(object{"mounts": []object{{"path": filepath.Dir(muster), "read_only": true}, {"path": inner.dir}}})
			j.succeeds("--engine", engine, "--policy", policy)
			has(t, read(j.own("w/log/worker-0/stdout.log")), map[string]string{"inner": "0"})
		})
	}
}

// What the operator allows by name works, and what is denied does not; the definition has no word for it.
func TestPolicyChangesTheDefaultFilter(t *testing.T) {
	need.Root(t)
	const script = `unshare -U true 2>/dev/null && echo unshare works || echo unshare refused
python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)' 2>/dev/null && echo packet works || echo packet refused
uname >/dev/null && echo uname works || echo uname refused`
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, script, nil)
			has(t, j.succeeds("--engine", engine), map[string]string{"unshare": "refused", "packet": "refused", "uname": "works"})
			j.app += "x"
			policy := j.policy(object{
				"seccomp": object{"allow": []string{"unshare"}, "deny": []string{"uname"}}, "capabilities": object{"add": []string{"NET_RAW"}},
			})
			out := j.succeeds("--engine", engine, "--policy", policy)
			has(t, out[strings.Index(out, "uname works"):], map[string]string{"unshare": "works", "packet": "refused"})
			if !strings.Contains(out, "uname refused") {
				t.Errorf("a call that is denied: %s", out)
			}
			j.app += "h" // the network is the host's: what concerns it takes the host's root
			out = j.hostIDs().succeeds("--engine", engine, "--policy", policy)
			has(t, out[strings.Index(out, "uname refused"):], map[string]string{"unshare": "works", "packet": "works"})
		})
	}
}

// unconfined is the word by which the operator has no filter; a root's capabilities stay bounded.
func TestPolicyUnconfined(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, `grep -E '^(Seccomp|CapEff):' /proc/self/status | tr -d '\t'`, nil)
			has(t, j.succeeds("--engine", engine, "--policy", j.policy(object{"seccomp": "unconfined"})), map[string]string{
				"Seccomp:0": "", "CapEff:00000000000405fb": "",
			})
		})
	}
}

// A profile that the operator names and that the host does not have stops a container before it starts.
func TestPolicyAppArmorProfileThatIsAbsent(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := newJob(t, "touch ran", nil)
	e := j.run("--engine", "container", "--policy", j.policy(object{"label": object{"apparmor": "muster-no-such-profile"}}))
	e.fails(t, registry.ClassNotPermitted, 77, "AppArmor profile muster-no-such-profile")
	if !absent(j.own("ran")) {
		t.Error("the process was started all the same")
	}
}
