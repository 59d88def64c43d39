package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
)

const watchdog = 30 * time.Second

// rig is a server whose programs run on this host, and the keys that may log in.
type rig struct {
	address string
	host    ssh.PublicKey

	mu      sync.Mutex
	may     map[string]bool
	events  []string
	resized chan status.ExecSize
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return serve(t, false)
}

func serve(t *testing.T, passwords bool) *rig {
	t.Helper()
	host, err := HostKey("token", "app", "worker-0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		address: l.Addr().String(), host: host.PublicKey(), may: map[string]bool{},
		resized: make(chan status.ExecSize, 8),
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, l, Config{
			Host: host, Admit: r.admit, Passwords: passwords, Exec: r.exec, Log: slog.New(slog.DiscardHandler), Event: r.event,
			Dial: func(ctx context.Context, address string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", address)
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(watchdog):
			t.Error("the server does not end")
		}
	})
	return r
}

func (r *rig) admit(_ context.Context, key string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.may[key] {
		return "", registry.ErrNoLogin
	}
	return "alice", nil
}

func (r *rig) event(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, text)
}

func (r *rig) told() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.events, "\n")
}

// exec runs a program of this host, as an agent runs one in a container.
func (r *rig) exec(_ context.Context, ask status.ExecRequest) (status.Execution, error) {
	if ask.Argv[len(ask.Argv)-1] == "nothing" {
		return status.Execution{}, errors.New("the container does not exist yet")
	}
	cmd := exec.Command(ask.Argv[0], ask.Argv[1:]...)
	cmd.Env, cmd.SysProcAttr = ask.Env, &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	var out, errs io.ReadCloser
	if err == nil {
		out, err = cmd.StdoutPipe()
	}
	if err == nil {
		errs, err = cmd.StderrPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return status.Execution{}, err
	}
	var outputs sync.WaitGroup
	outputs.Add(2)
	over := make(chan status.ExecExit, 1)
	go func() {
		outputs.Wait()
		_ = cmd.Wait()
		x := status.ExecExit{Code: cmd.ProcessState.ExitCode()}
		if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() {
			x = status.ExecExit{Signal: int(s.Signal())}
		}
		over <- x
	}()
	kill := func(n int) error { return syscall.Kill(-cmd.Process.Pid, syscall.Signal(n)) }
	return status.Execution{
		Stdin: in, Stdout: &untilEnd{Reader: out, done: outputs.Done}, Stderr: &untilEnd{Reader: errs, done: outputs.Done},
		Resize: func(z status.ExecSize) error { r.resized <- z; return nil }, Signal: kill,
		Wait: func(ctx context.Context) status.ExecExit {
			select {
			case x := <-over:
				return x
			case <-ctx.Done():
				return status.ExecExit{Error: ctx.Err().Error()}
			}
		},
		Close: func() error { return kill(1) },
	}, nil
}

// untilEnd calls done once at the end.
type untilEnd struct {
	io.Reader
	once sync.Once
	done func()
}

func (u *untilEnd) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	if err != nil {
		u.once.Do(u.done)
		err = io.EOF
	}
	return n, err
}

// key makes a key; permitted ones may log in.
func (r *rig) key(t *testing.T, permitted bool) ssh.Signer {
	t.Helper()
	private, public, err := NewKey("test")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(private))
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.may[public] = permitted
	return signer
}

func (r *rig) dial(auth ...ssh.AuthMethod) (*ssh.Client, error) {
	return ssh.Dial("tcp", r.address, &ssh.ClientConfig{
		User: "anybody", Auth: auth, HostKeyCallback: ssh.FixedHostKey(r.host), Timeout: watchdog,
	})
}

func (r *rig) client(t *testing.T) *ssh.Client {
	t.Helper()
	c, err := r.dial(ssh.PublicKeys(r.key(t, true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newSession(t *testing.T, c *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCommands(t *testing.T) {
	c := newRig(t).client(t)
	for name, tt := range map[string]struct {
		command, in, out, errs string
		code                   int
		signal                 string
	}{
		"streams":         {"cat; echo oops >&2", "hello", "hello", "oops\n", 0, ""},
		"an exit code":    {"exit 7", "", "", "", 7, ""},
		"a signal":        {"kill -TERM $$", "", "", "", 0, "TERM"},
		"does not start":  {"nothing", "", "", "muster: the container does not exist yet\r\n", 255, ""},
		"reads no input":  {"echo done", strings.Repeat("x", 8<<20), "done\n", "", 0, ""},
		"variables":       {`echo "$LANG $LC_ALL $LD_PRELOAD $PATH_INFO"`, "", "C de_DE  \n", "", 0, ""},
		"a large output":  {"head -c 5000000 /dev/zero | tr '\\0' z", "", strings.Repeat("z", 5000000), "", 0, ""},
		"a word that is.": {"printf %s 'a  b'", "", "a  b", "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, c)
			for _, v := range [][2]string{{"LANG", "C"}, {"LC_ALL", "de_DE"}, {"LD_PRELOAD", "/x"}, {"PATH_INFO", "y"}} {
				_ = s.Setenv(v[0], v[1]) // some are refused
			}
			var out, errs bytes.Buffer
			s.Stdin, s.Stdout, s.Stderr = strings.NewReader(tt.in), &out, &errs
			err := s.Run(tt.command)
			code, signal := 0, ""
			if ended, ok := errors.AsType[*ssh.ExitError](err); ok {
				code, signal = ended.ExitStatus(), ended.Signal()
			} else if err != nil && !errors.Is(err, io.EOF) { // of input that nobody reads
				t.Fatal(err)
			}
			if signal != "" {
				code = 0
			}
			if out.String() != tt.out || errs.String() != tt.errs || code != tt.code || signal != tt.signal {
				t.Errorf("got %.80q, %.80q, code %d, signal %q", out.String(), errs.String(), code, signal)
			}
		})
	}
}

// TestTerminal: a terminal's size reaches the program, and a signal ends it.
func TestTerminal(t *testing.T) {
	r := newRig(t)
	s := newSession(t, r.client(t))
	if err := s.RequestPty("xterm", 24, 80, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err == nil {
		err = s.Start("echo $TERM; sleep 1000")
	}
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "xterm\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := s.WindowChange(50, 132); err != nil {
		t.Fatal(err)
	}
	select {
	case z := <-r.resized:
		if z != (status.ExecSize{Rows: 50, Columns: 132}) {
			t.Errorf("got %+v", z)
		}
	case <-time.After(watchdog):
		t.Fatal("no new size")
	}
	if err := s.Signal(ssh.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if ended, ok := errors.AsType[*ssh.ExitError](s.Wait()); !ok || ended.Signal() != "KILL" {
		t.Errorf("got %v", ended)
	}
}

// TestRefused: a hundred logins with wrong keys, and without any, are refused in a line or two, while a good one works.
func TestRefused(t *testing.T) {
	r := newRig(t)
	good := r.client(t)
	var all sync.WaitGroup
	for range 100 {
		wrong := r.key(t, false)
		all.Go(func() {
			if c, err := r.dial(ssh.PublicKeys(wrong)); err == nil {
				_ = c.Close()
				t.Error("a wrong key has logged in")
			}
		})
	}
	for _, auth := range []ssh.AuthMethod{ssh.Password("x"), ssh.KeyboardInteractive(
		func(string, string, []string, []bool) ([]string, error) { return nil, nil },
	)} {
		if c, err := r.dial(auth); err == nil {
			_ = c.Close()
			t.Error("a password has logged in")
		}
	}
	all.Wait()
	if out, err := newSession(t, good).Output("echo ok"); err != nil || string(out) != "ok\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if n := strings.Count(r.told(), "refused"); n > 2 {
		t.Errorf("told of %d times:\n%s", n, r.told())
	}
}

// TestPassword: where passwords are taken the permitted one is, and no other.
func TestPassword(t *testing.T) {
	r := serve(t, true)
	password, key := NewPassword()
	other, _ := NewPassword()
	r.mu.Lock()
	r.may[key] = true
	r.mu.Unlock()
	c, err := r.dial(ssh.Password(password))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if out, err := newSession(t, c).Output("echo ok"); err != nil || string(out) != "ok\n" {
		t.Errorf("got %q, %v", out, err)
	}
	for _, wrong := range []string{"", other, key, strings.ToLower(password)} {
		if c, err := r.dial(ssh.Password(wrong)); err == nil {
			_ = c.Close()
			t.Errorf("%q has logged in", wrong)
		}
	}
}

// TestOtherHost: a client that pins the key of another instance does not log in.
func TestOtherHost(t *testing.T) {
	r := newRig(t)
	other, err := HostKey("token", "app", "worker-1")
	if err != nil {
		t.Fatal(err)
	}
	r.host = other.PublicKey()
	if c, err := r.dial(ssh.PublicKeys(r.key(t, true))); err == nil {
		_ = c.Close()
		t.Error("logged in")
	}
}

// TestForward: connections go where the server can connect, also when the other side says its part first.
func TestForward(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text, _ := io.ReadAll(conn)
				fmt.Fprintf(conn, "got %s", text)
			}()
		}
	}()
	c := r.client(t)
	for range 3 {
		conn, err := c.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "hello"); err != nil {
			t.Fatal(err)
		}
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); err != nil || string(text) != "got hello" {
			t.Errorf("got %q, %v", text, err)
		}
	}
	if n := strings.Count(r.told(), "connection to "+l.Addr().String()); n != 1 {
		t.Errorf("told of %d times:\n%s", n, r.told())
	}
	l.Close()
	if conn, err := c.Dial("tcp", l.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("connected to nobody")
	}
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("the server listens for a client")
	}
}

// What a login did without a session is told at its end: also that it did nothing, and how many connections more than
// are told of one by one.
func TestLoginWithoutSession(t *testing.T) {
	r := newRig(t)
	c := r.client(t)
	for i := range mostTold + 5 {
		if conn, err := c.Dial("tcp", fmt.Sprintf("127.0.0.%d:1", i+1)); err == nil {
			_ = conn.Close()
		}
	}
	idle := r.client(t)
	if err := errors.Join(c.Close(), idle.Close()); err != nil {
		t.Fatal(err)
	}
	count := func(text string) int { return strings.Count(r.told(), text) }
	for end := time.Now().Add(watchdog); count("no session") < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not told:\n%s", r.told())
		}
	}
	for text, n := range map[string]int{
		"connection to 127.0.0.": mostTold, "connections to more than 16 addresses for alice": 1,
		"connections to other addresses for alice": 1, "login of alice": 2, "127.0.0.1: 5": 1,
	} {
		if count(text) != n {
			t.Errorf("%q %d times, want %d:\n%s", text, count(text), n, r.told())
		}
	}
}

// TestHangup: what a client leaves behind ends, and the events say so.
func TestHangup(t *testing.T) {
	r := newRig(t)
	c := r.client(t)
	s := newSession(t, c)
	out, err := s.StdoutPipe()
	if err == nil {
		err = s.Start("echo on; exec sleep 1000")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	for deadline := time.Now().Add(watchdog); !strings.Contains(r.told(), "ends after"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not end:\n%s", r.told())
		}
	}
	if got := r.told(); !strings.Contains(got, "session 1 of alice (SHA256:") ||
		!strings.Contains(got, ") from 127.0.0.1 begins: command echo on; exec sleep 1000") {
		t.Errorf("got %s", got)
	}
}
