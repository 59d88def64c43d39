package confine_test

import (
	"bytes"
	binaryform "encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// policy writes an operator's file beside the job.
func (j *job) policy(p object) (path string) {
	j.t.Helper()
	text, err := json.Marshal(versioned(p))
	j.must(err)
	path = filepath.Join(filepath.Dir(j.work), "policy.json")
	j.must(os.WriteFile(path, text, 0o644))
	return path
}

// anyUser has the operator let definitions name every user and group of the host but root.
func (j *job) anyUser() *job {
	j.t.Helper()
	j.env = append(j.env, "MUSTER_AGENT_POLICY="+j.policy(object{"users": object{"names": []string{"1-65534"}, "groups": []string{"0-65534"}}}))
	return j
}

// hostIDs has its process be root of the host, as muster.root=overlay and processes that make device nodes must be.
func (j *job) hostIDs() *job {
	j.env = append(j.env, "MUSTER_AGENT_USERNS=host")
	return j
}

// nodeMaker has the operator let processes that are root make device nodes, to see which they may open.
func (j *job) nodeMaker() *job {
	j.t.Helper()
	j.env = append(j.env, "MUSTER_AGENT_POLICY="+j.policy(object{"capabilities": object{"add": []string{"MKNOD"}}}))
	return j
}

// versioned is a policy with its version.
func versioned(p object) object {
	p["version"] = 1
	return p
}

func TestPolicyRefusesRoot(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "id -u", nil)
			policy := j.policy(object{"userns": "host", "refuse_root": true, "users": object{"names": []string{"nobody"}}})
			j.run("--engine", engine, "--policy", policy).fails(t, registry.ClassNotPermitted, 77, "the process would be root of this host, which its policy refuses: set muster.user")
			for _, root := range []string{"root", "0:0", "00:0"} {
				j.app += "x"
				j.define("id -u", settings{"muster.user": root})
				j.run("--engine", engine, "--policy", policy).fails(t, registry.ClassNotPermitted, 77, "would be root of this host")
			}
			j.app += "x"
			j.define("id -u", settings{"muster.user": "nobody"})
			if out := j.succeeds("--engine", engine, "--policy", policy); out != "65534\n" {
				t.Errorf("the process ran as %q, want nobody", out)
			}
			j.app += "x"
			j.define("id -u", nil) // with ids of its own root is not the host's
			policy = j.policy(object{"refuse_root": true})
			if out := j.succeeds("--engine", engine, "--policy", policy); out != "65534\n0\n" {
				t.Errorf("the process ran as %q, want root inside", out)
			}
		})
	}
}

func TestPolicyMounts(t *testing.T) {
	need.Root(t)
	t.Parallel()
	host := folder.Temp(t, "mc-")
	for _, dir := range []string{"data", "store", "store/ckpt", "hidden"} {
		folder.OfAll(t, filepath.Join(host, dir))
		if err := os.WriteFile(filepath.Join(host, dir, "file"), []byte(dir+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	store := filepath.Join(host, "store")
	j := newJob(t, `cat /tmp/data/file; touch /tmp/data/new 2>/dev/null && echo data written || echo data refused
touch "$STORE/new" && echo store written; cat "$HIDDEN/file" 2>/dev/null && echo hidden seen || echo hidden absent
touch "$MUSTER_CHECKPOINT_DIR/saved" && echo checkpoint $MUSTER_CHECKPOINT_DIR`, settings{
		"muster.env.STORE": store, "muster.env.HIDDEN": filepath.Join(host, "hidden"), "muster.checkpoint.dir": filepath.Join(store, "ckpt"),
	})
	// without the mount the checkpoint folder would be lost
	e := j.run("--engine", "container")
	e.fails(t, registry.ClassNotPermitted, 77, "checkpoint folder "+filepath.Join(store, "ckpt")+" is not in the container", `"mounts": [{"path": "`+filepath.Join(store, "ckpt")+`"}]`, "to /etc/muster/policy.json")
	j.app += "x"
	policy := j.policy(object{"mounts": []object{{"path": filepath.Join(host, "data"), "to": "/tmp/data", "read_only": true}, {"path": store}}})
	out := j.succeeds("--engine", "container", "--policy", policy)
	has(t, out, map[string]string{"data": "", "store": "written", "hidden": "absent", "checkpoint": filepath.Join(store, "ckpt")})
	if !strings.Contains(out, "data refused") {
		t.Errorf("a read-only mount could be written:\n%s", out)
	}
	if absent(filepath.Join(store, "new")) || absent(filepath.Join(store, "ckpt", "saved")) {
		t.Error("what was written to the mount is not on the host")
	}
}

// filterUname is a filter by which uname(2) fails with EPERM and all else passes, as the kernel takes it.
func filterUname(t *testing.T) []byte {
	t.Helper()
	type instruction struct {
		Code   uint16
		JT, JF uint8
		K      uint32
	}
	var b bytes.Buffer
	for _, i := range []instruction{
		{unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, 0, 0, 0}, // seccomp_data.nr
		{unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, 0, 1, unix.SYS_UNAME},
		{unix.BPF_RET | unix.BPF_K, 0, 0, 0x00050000 | uint32(unix.EPERM)}, // SECCOMP_RET_ERRNO
		{unix.BPF_RET | unix.BPF_K, 0, 0, 0x7fff0000},                      // SECCOMP_RET_ALLOW
	} {
		if err := binaryform.Write(&b, binaryform.NativeEndian, i); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// A filter holds the app, and not the guard that stands before it.
func TestPolicyFilter(t *testing.T) {
	need.Root(t)
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, `uname && echo uname answered || echo uname refused; grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status | tr -d '\t'; mkfifo hold; echo here; cat hold`, nil)
			filter := filepath.Join(filepath.Dir(j.work), "uname.bpf")
			j.must(os.WriteFile(filter, filterUname(t), 0o644))
			p := j.begin("--engine", engine, "--policy", j.policy(object{"seccomp": filter}))
			j.says("here")
			has(t, j.log("stdout.log"), map[string]string{"uname": "refused", "Seccomp:2": ""})
			guard := j.remains().Guard
			if guard == nil {
				t.Fatal("the instance's file names no guard")
			}
			if mode, _ := lineOf(strings.ReplaceAll(read("/proc/"+strconv.Itoa(guard.Pid)+"/status"), ":\t", " "), "Seccomp"); mode != "0" {
				t.Errorf("the guard has seccomp mode %q, want 0", mode)
			}
			j.release()
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// A policy that is nobody's word, or no policy, stops every start.
func TestPolicyIsRefused(t *testing.T) {
	need.Root(t)
	for name, c := range map[string]struct {
		spoil func(j *job, path string)
		word  string
	}{
		"others may write": {func(j *job, path string) { j.must(os.Chmod(path, 0o666)) }, "may be written by others (mode 0666): chmod go-w"}, //nolint:gosec // on purpose
		"a stranger's":     {func(j *job, path string) { j.must(os.Chown(path, 54321, 54321)) }, "belongs to uid 54321"},
		"unknown field": {func(j *job, path string) {
			j.must(os.WriteFile(path, []byte(`{"version":1,"refuse_rot":true}`), 0o644))
		}, "refuse_rot"},
		"another version": {func(j *job, path string) { j.must(os.WriteFile(path, []byte(`{"version":2}`), 0o644)) }, "version: got 2, want 1"},
		"not there":       {func(j *job, path string) { j.must(os.Remove(path)) }, "no such file"},
		"half a filter":   {func(j *job, path string) { j.badFilter(path, 0o644) }, "want 1 to 4096 instructions of 8 bytes"},
		"writable filter": {func(j *job, path string) { j.badFilter(path, 0o666) }, "may be written by others"},
		"a relative folder": {func(j *job, path string) {
			j.must(os.WriteFile(path, []byte(`{"version":1,"mounts":[{"path":"x"}]}`), 0o644))
		}, "want an absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, "touch ran", nil)
			path := j.policy(object{})
			c.spoil(j, path)
			_, said, code := j.verb("run", j.dir, "--app-id", j.app, "--work-dir", j.work, "--policy", path)
			if code != 77 || !strings.Contains(said, c.word) {
				t.Errorf("run ended with %d: %s; want 77 and %q", code, said, c.word)
			}
			if !absent(j.own("ran")) {
				t.Error("the process was started all the same")
			}
		})
	}
}

func (j *job) badFilter(path string, mode os.FileMode) {
	filter := path + ".bpf"
	j.must(os.WriteFile(filter, []byte("12345"), 0o644))
	j.must(os.Chmod(filter, mode))
	j.policy(object{"seccomp": filter})
}

// A mount that the host does not have is named, by its place in the policy.
func TestPolicyMountThatIsAbsent(t *testing.T) {
	need.Root(t)
	t.Parallel()
	j := newJob(t, "true", nil)
	gone := filepath.Join(filepath.Dir(j.work), "gone")
	policy := j.policy(object{"mounts": []object{{"path": filepath.Dir(gone), "read_only": true, "to": "/mnt"}, {"path": gone}}})
	j.run("--engine", "container", "--policy", policy).fails(t, registry.ClassNotPermitted, 77,
		"mounts[1] of "+policy+": path "+gone+" is not on this host: let the operator make or mount it")
	j.app += "x"
	j.succeeds("--engine", "process", "--policy", policy) // it has no mounts
}

// What the process of a root agent will lack although it starts is a warning: capabilities that subordinate ids bring to
// nothing, and an agent's socket in a folder that is closed to these ids.
func TestWhatSubordinateIDsLack(t *testing.T) {
	need.Root(t)
	const caps, socket = "capabilities.add of POLICY: NET_RAW, CAP_MKNOD without effect", "the process cannot ask its agent ("
	for _, engine := range engines() {
		for name, tc := range map[string]struct {
			args []string
			more settings
			shut bool // the state folder lies in a closed one
			want []string
		}{
			"ids of its own":       {shut: true, want: []string{caps, socket}},
			"an open state folder": {want: []string{caps}},
			"the host's ids":       {args: []string{"--userns", "host"}, shut: true},
			"a user of the host":   {more: settings{"muster.user": "nobody"}, shut: true, want: []string{socket}},
		} {
			t.Run(engine+"/"+name, func(t *testing.T) {
				t.Parallel()
				j := newJob(t, "true", tc.more)
				if tc.shut {
					j.state = filepath.Join(j.folderOf("closed", 0, 0o700), "s")
				}
				policy := j.policy(object{
					"capabilities": object{"add": []string{"NET_RAW", "CAP_MKNOD", "SYS_PTRACE"}}, "users": object{"names": []string{"nobody"}},
				})
				e := j.run(append([]string{"--engine", engine, "--policy", policy}, tc.args...)...)
				for _, warning := range []string{caps, socket} {
					wanted := slices.Contains(tc.want, warning) && !(warning == socket && engine == "container") // it is shown the socket
					if got := strings.Contains(e.said, strings.ReplaceAll(warning, "POLICY", policy)); got != wanted || e.code != 0 {
						t.Errorf("exit code %d, warning %q: %v, want %v\n%s", e.code, warning, got, wanted, e.said)
					}
				}
			})
		}
	}
}
