// Package troubles_test makes the situations that a new user meets first, with the built binary, and asks the catalogue of
// errors for the first message of each.
package troubles_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/ports"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// watchdog bounds each command. It ends a test that has gone wrong.
const watchdog = 2 * time.Minute

// muster is the program under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// one is a machine, a folder on it that commands are typed in, and a work folder.
type one struct {
	t    *testing.T
	host commandline.Host
	dir  string
}

// TestElevenSituations: each ends with this code, the first message tells what is wrong, and the catalogue has a row for
// it. With -v they are printed as a table (doc/measured).
func TestElevenSituations(t *testing.T) {
	need.Root(t) // an image's root, a limit of memory, a full disk
	tests := []struct {
		name  string
		make  func(o *one) []string // what is typed behind muster
		code  int
		first string // the first message of trouble
		mend  string // the words beside it that tell how to mend it
		row   string // the symptom of the row that it has
	}{
		{"wrong image", func(o *one) []string {
			ref := registryserver.Start(o.t, registryserver.Options{}).Ref("team/trainer:lates")
			return line("--image", ref, "--", "true")
		}, 69, `worker-0 failed: did not start: image .*/team/trainer:lates: .*not found.*; check the name and the tag`, `check the name and the tag`, "check the name and the tag"},
		{"missing file", func(*one) []string {
			return line("--", "python3", "train.py")
		}, 64, `muster: run: train\.py: no such file in /`, `name it by its path from here, or give the --dir that it is in`, "…: no such file in …"},
		{"a file that the program opens", func(*one) []string {
			return line("--", "python3", "-c", "open('words.txt')")
		}, 1, `No such file or directory: 'words.txt'`, `brings: nothing \(--file and --dir bring files\)`, "No such file or directory"},
		{"port taken", func(o *one) []string {
			return line("--ports", o.busy(), "--", "true")
		}, 69, `worker-0 failed: did not start: port .*no port is free in`, `widen --ports`, "no port is free"},
		{"port taken by the program's own choice", func(o *one) []string {
			return line("--", "python3", "-c", "import socket; socket.create_server(('', "+o.busy()+"))")
		}, 69, `failed: worker-0 exited with 1: address already in use`, `have the program listen at a port that muster chose`, "address already in use"},
		{"out of memory", func(*one) []string {
			return line("--memory", "64", "--", "python3", "-c", "x = b'x' * (500 << 20)")
		}, 137, `worker-0 ran out of memory.*: killed at the limit of 64 MB`, `raise yarn.memory of worker`, "killed at the limit of … MB"},
		{"exit 1 at start", func(*one) []string {
			return line("--", "python3", "-c", "import nosuchmodule")
		}, 1, `worker-0 exited with 1`, `help: muster help errors No module named`, "… exited with 1"},
		{"one never arrives", func(o *one) []string {
			s := consulserver.Start(o.t, consulserver.Options{})
			o.do("run", "--framework", "none", "-n", "2", "--save", "app", "--", "true")
			return []string{
				"agent", "--app", "app", "--app-id", "job", "--component", "worker", "--index", "0", "--work-dir", "w", "--registry", s.URL(),
				"--set", "muster.barrier.timeout=3s",
			}
		}, 76, `1 of 2 instances were not ready within 3 s: worker-1 \(never joined\)`, `advice="see why they were not launched or did not get ready, or raise muster.barrier.timeout"`, "never joined"},
		{"Consul down", func(o *one) []string {
			down := "consul://127.0.0.1:" + strconv.Itoa(ports.Claim(o.t, 1)[0])
			return line("--registry", down, "--", "true")
		}, 69, `muster: registry consul://.*: registry is unreachable: .*connection refused`, `start it, give --registry another, or look at it with muster doctor`, "registry is unreachable"},
		{"wrong ACL", func(o *one) []string {
			s := consulserver.Start(o.t, consulserver.Options{
				Token: manager, Config: `acl { enabled = true, default_policy = "deny", tokens { initial_management = "` + manager + `" } }`,
			})
			o.host.Env = append(o.host.Env, "CONSUL_HTTP_TOKEN="+o.powerless(s))
			return line("--registry", s.URL(), "--", "true")
		}, 77, `registry forbids it: Permission denied: .*lacks permission 'key:read'.*; give CONSUL_HTTP_TOKEN a token with the rules`, `the rules that muster acl APP prints`, "registry forbids it"},
		{"bad JSON", func(o *one) []string {
			o.do("run", "--framework", "none", "--save", "app", "--", "true")
			text := []byte(`{"global": {"muster.command" "true"}}`)
			if err := os.WriteFile(filepath.Join(o.dir, "app", "appConfig.json"), text, 0o600); err != nil {
				o.t.Fatal(err)
			}
			return []string{"run", "app", "--work-dir", "w"}
		}, 65, `appConfig.json:1: got .*, want JSON`, `at column`, "got …, want JSON"},
		{"typo in a key", func(*one) []string {
			return line("--set", "muster.comand=true", "--", "true")
		}, 0, `got unknown key "muster.comand", want a key that muster knows; did you mean muster.command\?`, `did you mean muster.command`, "got unknown key …, want a key that muster knows"},
		{"full disk at the start", func(o *one) []string {
			disk := o.disk()
			if err := os.WriteFile(filepath.Join(disk, "other"), make([]byte, 3<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
				o.t.Fatalf("the disk is not full: %v", err)
			}
			return []string{"run", "--framework", "none", "--work-dir", filepath.Join(disk, "w"), "--", "true"}
		}, 1, `muster: .*no space left on device; free some`, `name a folder on another \(--work-dir`, "no space left on device"},
		{"full disk while files are brought", func(o *one) []string {
			disk := o.disk()
			o.do("run", "--framework", "none", "--save", "app", "--", "true")
			model := filepath.Join(o.dir, "model.bin")
			if err := os.WriteFile(model, make([]byte, 3<<20), 0o644); err != nil { //nolint:gosec // the process reads it as another user
				o.t.Fatal(err)
			}
			return []string{"run", "app", "--work-dir", filepath.Join(disk, "w"), "--set", "muster.file.model=" + model}
		}, 69, `worker-0 failed: did not start: muster.file.model: copy .*no space left on device; free some`, `free space on that file system, or give --work-dir`, "no space left on device"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &one{t, commandline.NewHost(t, muster), folder.Temp(t, "muster-troubles-")}
			args := tt.make(o)
			code, said := o.run(args...)
			if code != tt.code {
				t.Errorf("muster %s: exit code %d, want %d:\n%s", strings.Join(args, " "), code, tt.code, said)
			}
			message, mend := lineWith(said, tt.first), lineWith(said, tt.mend)
			if message == "" {
				t.Fatalf("muster %s: no line matches %s:\n%s", strings.Join(args, " "), tt.first, said)
			}
			if mend == "" {
				t.Errorf("muster %s: nothing says %s:\n%s", strings.Join(args, " "), tt.mend, said)
			}
			rows := o.do("help", "errors", message)
			if !strings.Contains(rows, "\n  "+tt.row) {
				t.Errorf("muster help errors %q: got\n%s\nwant the row %q", message, rows, tt.row)
			}
			t.Logf("\ntyped:  muster %s\nends:   %d\nfirst:  %s\nmended: %s", strings.Join(args, " "), code, message, mend)
		})
	}
}

// lineWith is the first line that matches; "": none does.
func lineWith(text, pattern string) string {
	search := regexp.MustCompile(pattern)
	for l := range strings.Lines(text) {
		if search.MatchString(l) {
			return strings.TrimSpace(l)
		}
	}
	return ""
}

// line is a run of one program, which is not restarted.
func line(args ...string) []string {
	return append([]string{"run", "--framework", "none", "--set", "muster.restart=never", "--work-dir", "w"}, args...)
}

// run runs muster in the folder, and gives its exit code and both its streams.
func (o *one) run(args ...string) (code int, said string) {
	o.t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(o.t.Context(), muster, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.dir, o.host.Env, &out, &out
	if err := leash.Run(cmd, watchdog); err != nil && cmd.ProcessState == nil {
		o.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// do runs what must succeed.
func (o *one) do(args ...string) string {
	o.t.Helper()
	code, said := o.run(args...)
	if code != 0 {
		o.t.Fatalf("muster %s: exit code %d:\n%s", strings.Join(args, " "), code, said)
	}
	return said
}

// busy is a port at which this test listens.
func (o *one) busy() string {
	o.t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0") //nolint:gosec // agents try all addresses
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// disk is a disk of 2 MB.
func (o *one) disk() string {
	o.t.Helper()
	dir := filepath.Join(o.dir, "disk")
	if err := errors.Join(os.Mkdir(dir, 0o755), unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m")); err != nil { //nolint:gosec // see folder.Make
		need.Skip(o.t, "mount tmpfs: "+err.Error())
	}
	o.t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			o.t.Error(err)
		}
	})
	return dir
}

// powerless is a token of a Consul that denies whatever no rule allows; it has no rule.
func (o *one) powerless(s *consulserver.Server) string {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodPut, "http://"+s.HTTPAddr+"/v1/acl/token", strings.NewReader("{}"))
	if err != nil {
		o.t.Fatal(err)
	}
	req.Header.Set("X-Consul-Token", manager)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	var made struct{ SecretID string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.SecretID == "" {
		o.t.Fatalf("PUT /v1/acl/token: %s, %v", resp.Status, err)
	}
	return made.SecretID
}

// manager is the token that manages a Consul with ACLs.
const manager = "6d75a000-0000-4000-8000-000000000002"

// TestConsulDownWhileItRuns: the terminal tells at once, and again when it is over. The job goes on.
func TestConsulDownWhileItRuns(t *testing.T) {
	need.Root(t)
	host, consul := commandline.NewHost(t, muster), consulserver.Start(t, consulserver.Options{})
	run := host.Start("run", "--framework", "none", "--app-id", "job", "--work-dir", commandline.WorkFolder(t), "--registry", consul.URL(),
		"--output", "lines", "--", "sleep", "1000")
	_, at := run.Await(t, 0, `muster: running \(attempt 1`)
	consul.Stop()
	_, at = run.Await(t, at, `muster: warning: .*registry is unreachable: .*; what runs goes on meanwhile: start the registry again`)
	consul.Restart()
	run.Await(t, at, `muster: the registry answers again`)
	host.Do("stop", "job", "--registry", consul.URL())
	if code := run.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0: stopped", code)
	}
}
