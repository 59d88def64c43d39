// Package login_test logs in to instances as their users do: by muster ssh, and by OpenSSH's programs with the
// configuration that it prints. What is asserted is what these programs print and how they end, and the events.
package login_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/ports"
)

// watchdog bounds every wait.
const watchdog = 60 * time.Second

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// job is an app of two workers with an ssh server each. Methods end the test on errors.
type job struct {
	t                testing.TB
	app, top, config string
}

type settings = map[string]string

// begin starts an app whose processes wait for its end.
func begin(t testing.TB, more settings, args ...string) *job {
	t.Helper()
	need.Root(t) // the limits of a container
	if _, err := exec.LookPath("ssh"); err != nil {
		need.Skip(t, "needs OpenSSH's client (Debian: openssh-client)")
	}
	j := &job{t: t, app: "l" + strings.ToLower(rand.Text()[:8]), top: folder.Temp(t, "ml-")}
	j.config = filepath.Join(j.top, "config")
	global := settings{"muster.ssh": "true", "muster.command": "exec sleep 1000", "muster.env.COLOUR": "green"}
	maps.Copy(global, more)
	type object = map[string]any
	const schema = "http://example.org/specification/v2.0.0"
	worker := settings{"yarn.role.priority": "1", "yarn.component.instances": "2", "yarn.memory": "256"}
	for name, value := range map[string]any{
		"metainfo.json": object{"schemaVersion": "2.1", "application": object{
			"name": "login", "components": []any{object{"name": "worker"}},
		}},
		"appConfig.default.json": object{"schema": schema, "global": global, "components": object{}},
		"resources.default.json": object{"schema": schema, "global": object{}, "components": object{"worker": worker}},
	} {
		text, err := json.Marshal(value)
		j.must(err)
		j.must(os.MkdirAll(filepath.Join(j.top, "app"), 0o755))
		j.must(os.WriteFile(filepath.Join(j.top, "app", name), text, 0o644))
	}
	j.must(os.Mkdir(filepath.Join(j.top, "home"), 0o700))
	words := append([]string{
		"run", filepath.Join(j.top, "app"), "--detach", "--app-id", j.app, "--work-dir",
		filepath.Join(j.top, "w"), "--state-dir", j.state(),
	}, args...)
	if out, said, code := j.call("", muster, words...); code != 0 {
		t.Fatalf("muster run: code %d\n%s%s", code, out, said)
	}
	t.Cleanup(func() {
		if out, said, code := j.verb("stop", j.app, "--grace", "0s"); code != 0 {
			t.Errorf("muster stop: code %d\n%s%s", code, out, said)
		}
	})
	return j
}

func (j *job) must(err error) {
	j.t.Helper()
	if err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) state() string { return filepath.Join(j.top, "s") }

// call runs a program to its end, as somebody whose home is empty.
func (j *job) call(in, program string, args ...string) (out, said string, code int) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(j.top, "home"), "LANG=C", "TERM=xterm"}
	cmd.Dir = j.top
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &stdout, &stderr
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		j.t.Fatalf("%s: %v\n%s", program, err, stderr.String())
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// verb is a muster of this job's host.
func (j *job) verb(verb string, args ...string) (out, said string, code int) {
	j.t.Helper()
	return j.call("", muster, append([]string{verb, "--state-dir", j.state()}, args...)...)
}

// gives asserts what a program prints and how it ends.
func (j *job) gives(want string, code int, in, program string, args ...string) {
	j.t.Helper()
	out, said, got := j.call(in, program, args...)
	if out != want || got != code {
		j.t.Errorf("%s %q: code %d, want %d; printed %q, want %q\n%s", program, args, got, code, out, want, said)
	}
}

// configure has OpenSSH's programs know the instances.
func (j *job) configure() *job {
	j.t.Helper()
	out, said, code := j.verb("ssh", "--config", j.app)
	if code != 0 {
		j.t.Fatalf("muster ssh --config: code %d\n%s", code, said)
	}
	j.must(os.WriteFile(j.config, []byte(out), 0o600))
	return j
}

// ssh runs a command by OpenSSH's client.
func (j *job) ssh(args ...string) (out, said string, code int) {
	j.t.Helper()
	return j.call("", "ssh", append([]string{"-F", j.config}, args...)...)
}

func (j *job) events(instance string) string {
	j.t.Helper()
	out, _, _ := j.verb("events", j.app+"/"+instance)
	return out
}

// TestPrograms: OpenSSH's programs, and rsync, find what they find at an sshd.
func TestPrograms(t *testing.T) {
	j := begin(t, nil).configure()
	own := filepath.Join(j.top, "own")
	j.must(os.WriteFile(own, []byte(strings.Repeat("0123456789\n", 200_000)), 0o640))
	j.gives("in\n", 3, "in\n", "ssh", "-F", j.config, "worker-0", "cat; exit 3")
	j.gives("green worker-1 xterm\n", 0, "", "ssh", "-tt", "-F", j.config, j.app+"-worker-1", "stty -onlcr; echo $COLOUR $MUSTER_INSTANCE $TERM")
	j.gives("", 255, "", "ssh", "-F", j.config, "worker-0", "kill -TERM $$")
	piped, said, code := j.call("echo in $MUSTER_INSTANCE\n", muster, "ssh", "--state-dir", j.state(), j.app+"/worker-0")
	if code != 0 || piped != "in worker-0\n" || strings.Contains(said, "seudo-terminal") {
		t.Errorf("a shell that reads a pipe: code %d\n%s%s", code, piped, said)
	}
	same := func(name string) {
		t.Helper()
		if out, said, code := j.call("", "cmp", own, filepath.Join(j.top, name)); code != 0 {
			t.Errorf("%s%s", out, said)
		}
	}
	for i, more := range [][]string{{}, {"-O"}} { // by sftp, and by the container's own scp
		there, back := fmt.Sprintf("worker-0:there%d", i), fmt.Sprintf("back%d", i)
		j.gives("", 0, "", "scp", append(more, "-q", "-F", j.config, own, there)...)
		j.gives("", 0, "", "scp", append(more, "-q", "-F", j.config, there, back)...)
		same(back)
	}
	j.sftp("put own by-sftp\nrename by-sftp renamed\nget renamed by-sftp\n")
	same("by-sftp")
	t.Run("rsync", func(t *testing.T) {
		dir, err := exec.Command("../../scripts/lab/debian", "rsync", "rsync").Output()
		if err != nil {
			need.Skip(t, "scripts/lab/debian rsync: "+err.Error())
		}
		top := strings.TrimSpace(string(dir))
		rsync := filepath.Join(top, "usr/bin/rsync")
		files, err := filepath.Glob(filepath.Join(top, "usr/lib/*/lib*.so.*")) // beyond what is installed here
		j.must(err)
		j.gives("", 0, "", "scp", append(append([]string{"-q", "-F", j.config, rsync}, files...), "worker-0:.")...)
		through := []string{
			"LD_LIBRARY_PATH=" + strings.Join(folders(files), ":"), rsync, "--rsync-path", "env LD_LIBRARY_PATH=. ./rsync",
			"-e", "ssh -F " + j.config, "-a",
		}
		j.gives("", 0, "", "env", append(through, own, "worker-0:by-rsync")...)
		j.gives("", 0, "", "env", append(through, "worker-0:by-rsync", j.top)...)
		same("by-rsync")
	})
}

// sftp runs commands of sftp.
func (j *job) sftp(commands string) {
	j.t.Helper()
	if _, said, code := j.call(commands, "sftp", "-q", "-N", "-b", "-", "-F", j.config, "worker-0"); code != 0 {
		j.t.Errorf("sftp: code %d\n%s", code, said)
	}
}

// folders are where files lie.
func folders(files []string) []string {
	var all []string
	for _, f := range files {
		all = append(all, filepath.Dir(f))
	}
	return all
}

// TestForward: connections of the client's host arrive where the container can connect, as those of its process's user.
func TestForward(t *testing.T) {
	j := begin(t, nil).configure()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	j.must(err)
	defer l.Close()
	peer := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		peer <- conn.RemoteAddr().String()
		_, _ = io.Copy(conn, conn)
	}()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	j.must(err)
	here := free.Addr().String()
	j.must(free.Close())
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	client := exec.CommandContext(ctx, "ssh", "-N", "-F", j.config, "-L", here+":"+l.Addr().String(), "worker-0")
	j.must(client.Start())
	defer func() { cancel(); _ = client.Wait() }()
	var conn net.Conn
	for conn == nil && ctx.Err() == nil {
		conn, _ = net.Dial("tcp", here) // until the client listens
	}
	if conn == nil {
		t.Fatal("nobody listens at " + here)
	}
	defer conn.Close()
	j.must(conn.SetDeadline(time.Now().Add(watchdog)))
	_, err = io.WriteString(conn, "hello")
	j.must(err)
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Fatalf("got %q, %v", got, err)
	}
	process, _, _ := j.ssh("worker-0", "id -u; cat /proc/self/uid_map")
	if uid := uidOf(t, <-peer); uid != hostUID(t, process) {
		t.Errorf("the connection is uid %d's, the process %q", uid, process)
	}
	if _, _, code := j.ssh("-o", "ExitOnForwardFailure=yes", "-N", "-R", "0:127.0.0.1:1", "worker-0"); code == 0 {
		t.Error("the server listens for its client")
	}
}

// TestEditor: an editor's remote part, as VS Code starts it: a shell reads its script, starts a server at the
// instance's loopback, and the editor reaches it by the same connection's SOCKS proxy.
func TestEditor(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		need.Skip(t, "needs a Python 3")
	}
	j := begin(t, nil).configure()
	socks := fmt.Sprintf("127.0.0.1:%d", ports.Claim(t, 1)[0])
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	client := exec.CommandContext(ctx, "ssh", "-T", "-D", socks, "-o", "ExitOnForwardFailure=yes", "-F", j.config, j.app+"-worker-0", "sh")
	client.Stdin = strings.NewReader("uname -sm; mkdir site && cd site && echo of $MUSTER_INSTANCE >who && " +
		"exec python3 -u -m http.server --bind 127.0.0.1 0\n")
	out, err := client.StdoutPipe()
	j.must(err)
	j.must(client.Start())
	defer func() { cancel(); _ = client.Wait() }()
	lines := bufio.NewScanner(out)
	var said []string
	for len(said) < 2 && lines.Scan() {
		said = append(said, lines.Text())
	}
	if len(said) < 2 || !strings.HasPrefix(said[0], "Linux ") {
		t.Fatalf("the shell says %q", said)
	}
	var port int
	if _, err := fmt.Sscanf(said[1], "Serving HTTP on 127.0.0.1 port %d", &port); err != nil {
		t.Fatalf("%q: %v", said[1], err)
	}
	through := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "socks5", Host: socks})}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/who", port), nil)
	j.must(err)
	answer, err := through.Do(r)
	j.must(err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "of worker-0\n" {
		t.Errorf("%s, %v: %s", answer.Status, err, text)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if got := j.events("worker-0"); !strings.Contains(got, "connection to "+address+" for ") {
		t.Errorf("the events name no connection to %s:\n%s", address, got)
	}
}

// hostUID is the first uid inside as the host knows it, by a uid and lines of uid_map.
func hostUID(t *testing.T, text string) int {
	t.Helper()
	words := strings.Fields(text)
	if len(words) < 4 {
		t.Fatalf("got %q", text)
	}
	var n [4]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(words[i]); err != nil {
			t.Fatal(err)
		}
	}
	return n[0] - n[1] + n[2]
}

// uidOf is whose socket has a local address on this host.
func uidOf(t *testing.T, address string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 7 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) && !strings.HasSuffix(fields[2], ":0000") {
			uid, err := strconv.Atoi(fields[7])
			if err != nil {
				t.Fatal(err)
			}
			return uid
		}
	}
	t.Fatalf("no connection from %s", address)
	return 0
}

// TestTerminal: a program sees the size of the user's terminal, and its changes.
func TestTerminal(t *testing.T) {
	j := begin(t, nil).configure()
	python, err := exec.LookPath("python3")
	if err != nil {
		need.Skip(t, "needs a Python 3")
	}
	script, err := filepath.Abs("testdata/resize.py")
	j.must(err)
	const remote = `stty size; while [ "$(stty size)" = "24 80" ]; do sleep 0.05; done; stty size; exit 5`
	for name, client := range map[string][]string{
		"ssh":        {"ssh", "-tt", "-F", j.config, "worker-0", remote},
		"muster ssh": {muster, "ssh", "-t", "--state-dir", j.state(), j.app + "/worker-0", "--", "sh", "-c", remote},
	} {
		out, said, code := j.call("", python, append([]string{script}, client...)...)
		if code != 5 || !strings.Contains(out, "50 132") {
			t.Errorf("%s: code %d\n%s%s", name, code, out, said)
		}
	}
}

// TestWhatALoginSees: it is where the process is, as its user and within its limits.
func TestWhatALoginSees(t *testing.T) {
	const where = `id -u; pwd; for n in mnt pid ipc uts user net cgroup; do readlink /proc/self/ns/$n; done; ` +
		`sort /proc/self/cgroup; cat /proc/self/status | grep -E '^(Seccomp|NoNewPrivs|Cap...):'; ` +
		`ls /proc | grep -c '^[0-9]*$' | sed 's/^.$/few/'; env | grep -E '^(COLOUR|MUSTER_[A-DF-Z][A-Z]*|PATH|HOME)=' | sort`
	for _, user := range []string{"", "nobody"} {
		t.Run("user "+user, func(t *testing.T) {
			more := settings{}
			var args []string
			if user != "" {
				more["muster.user"] = user
				policy := filepath.Join(folder.Temp(t, "mlp-"), "policy.json")
				if err := os.WriteFile(policy, []byte(`{"version": 1, "users": {"names": ["nobody"]}}`), 0o644); err != nil {
					t.Fatal(err)
				}
				args = []string{"--policy", policy}
			}
			j := begin(t, more, args...).configure()
			want, said, code := j.verb("exec", j.app+"/worker-0", "--", "sh", "-c", where)
			if code != 0 || !strings.Contains(want, "few\n") || !strings.Contains(want, "COLOUR=green\n") {
				t.Fatalf("muster exec: code %d\n%s%s", code, want, said)
			}
			if got, said, _ := j.ssh("worker-0", where); got != want {
				t.Errorf("by ssh\n%s%s\nby muster exec\n%s", got, said, want)
			}
			j.sftp("mkdir by-sftp\n")
			if got, said, _ := j.ssh("worker-0", "[ $(stat -c %u by-sftp) = $(id -u) ] && echo own"); got != "own\n" {
				t.Errorf("what sftp makes is not the process's: %s", said)
			}
		})
	}
}

// TestBetween: instances are hosts of ssh for each other's programs, with nothing in anybody's home.
func TestBetween(t *testing.T) {
	j := begin(t, nil)
	const text = `set -e; ssh worker-1 'echo in $MUSTER_INSTANCE; echo made >made'; scp -q worker-1:made got; cat got; ` +
		`set +e; ssh worker-1 exit 9; echo code $?`
	out, said, code := j.verb("ssh", j.app+"/worker-0", "--", text)
	if code != 0 || out != "in worker-1\nmade\ncode 9\n" {
		t.Errorf("code %d\n%s%s", code, out, said)
	}
	if got := j.events("worker-1"); !strings.Contains(got, "of worker-0 (SHA256:") || !strings.Contains(got, "exit code 9") {
		t.Errorf("got %s", got)
	}
	if home, err := os.ReadDir(filepath.Join(j.top, "home")); err != nil || len(home) > 0 {
		t.Errorf("in the home: %v, %v", home, err)
	}
}

// TestRefused: wrong keys and no key at all get nowhere, a hundred at a time, and a key that was taken back neither.
func TestRefused(t *testing.T) {
	j := begin(t, nil).configure()
	wrong := filepath.Join(j.top, "wrong")
	j.gives("", 0, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", wrong)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 10 {
				_, said, code := j.ssh("-i", wrong, "-o", "IdentityFile="+wrong, "-o", "BatchMode=yes", "-F",
					j.without("IdentityFile"), "worker-0", "true")
				if code != 255 || !strings.Contains(said, "Permission denied (publickey)") {
					t.Errorf("code %d\n%s", code, said)
				}
			}
		})
	}
	all.Wait()
	if out, said, code := j.verb("ssh", j.app+"/worker-0", "--", "echo", "a  b"); code != 0 || out != "a  b\n" {
		t.Errorf("a good login: code %d\n%s%s", code, out, said)
	}
	if got := j.events("worker-0"); strings.Count(got, "refused") != 1 || !strings.Contains(got, "of root@") {
		t.Errorf("got %s", got)
	}
	if out, _, _ := j.verb("status", j.app); strings.Count(out, "running  1    1") != 2 {
		t.Errorf("the processes are not what they were:\n%s", out)
	}
}

// without is the configuration without an option.
func (j *job) without(option string) string {
	text, err := os.ReadFile(j.config)
	j.must(err)
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, option+" ") {
			kept.WriteString(line)
		}
	}
	path := filepath.Join(j.t.TempDir(), "config")
	j.must(os.WriteFile(path, []byte(kept.String()), 0o600))
	return path
}

// TestOwnClient: where PATH has no ssh, muster ssh is the client.
func TestOwnClient(t *testing.T) {
	j := begin(t, nil)
	python, err := exec.LookPath("python3")
	if err != nil {
		need.Skip(t, "needs a Python 3")
	}
	script, err := filepath.Abs("testdata/resize.py")
	j.must(err)
	without := []string{"PATH=" + t.TempDir(), muster, "ssh", "--state-dir", j.state()}
	j.gives("in worker-1\n", 6, "in\n", "env", append(without, j.app+"/worker-1", "--", "echo $(cat) $MUSTER_INSTANCE; exit 6")...)
	remote := []string{j.app + "/worker-0", "--", `stty size; while [ "$(stty size)" = "24 80" ]; do sleep 0.05; done; stty size; exit 5`}
	client := append(append([]string{script, "/usr/bin/env"}, append(without, "-t")...), remote...)
	if out, said, code := j.call("", python, client...); code != 5 || !strings.Contains(out, "50 132") {
		t.Errorf("code %d\n%s%s", code, out, said)
	}
}

// TestForbidden: where the policy forbids servers there are none, and the app runs.
func TestForbidden(t *testing.T) {
	policy := filepath.Join(folder.Temp(t, "mlp-"), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"version": 1, "ssh": false}`), 0o644); err != nil {
		t.Fatal(err)
	}
	j := begin(t, nil, "--policy", policy)
	_, said, code := j.verb("ssh", j.app+"/worker-0", "--", "true")
	if code != 64 || !strings.Contains(said, "worker-0 has no ssh server: ") || !strings.Contains(said, "ssh: false") {
		t.Errorf("code %d\n%s", code, said)
	}
	if out, _, _ := j.verb("status", j.app); !strings.Contains(out, "no ssh server: "+policy+" has ssh: false") {
		t.Errorf("status says nothing:\n%s", out)
	}
}
