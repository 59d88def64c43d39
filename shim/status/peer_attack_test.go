package status

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
)

// tap is a listener that keeps what its connections read.
type tap struct {
	net.Listener
	mu       sync.Mutex
	accepted int
	heard    bytes.Buffer
}

type tapped struct {
	net.Conn
	of *tap
}

func (l *tap) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted++
	return tapped{c, l}, nil
}

func (c tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.heard.Write(b[:n])
	return n, err
}

func listenTap(t *testing.T) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &tap{Listener: l}
}

// TestAttackManInTheMiddle: whoever answers in a peer's place with a certificate of his own is named, is told no token
// and starts no program.
func TestAttackManInTheMiddle(t *testing.T) {
	l := listenTap(t)
	other, err := NewPeerIdentity("a token of his own", "d1", "worker-1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	reached := make(chan string, 16)
	trap := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Header.Get("Authorization") })
	go func() { done <- ServePeers(ctx, l, other, trap, slog.New(slog.DiscardHandler)) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	peer := registry.JoinPeer(l.Addr().String(), identity(t).Key)
	c := DialPeer(peer, token)
	defer c.Close()
	_, stateErr := c.State(patience(t))
	_, silenceErr := c.Silence(patience(t))
	_, _, rosterErr := AskRoster(patience(t), peer, token, "7-ab", 20)
	_, execErr := c.upgrade(patience(t), peerPath("worker-1", 3), ExecRequest{Argv: []string{"id"}})
	for name, err := range map[string]error{
		"state": stateErr, "silence": silenceErr, "roster": rosterErr, "exec": execErr,
	} {
		if !errors.Is(err, errOtherKey) || !strings.Contains(err.Error(), l.Addr().String()) ||
			!strings.Contains(err.Error(), other.Key) {
			t.Errorf("%s: %v, want errOtherKey with the address and the key", name, err)
		}
	}
	select {
	case got := <-reached:
		t.Errorf("a request reached the man in the middle, with %q", got)
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accepted != 4 || bytes.Contains(l.heard.Bytes(), []byte(token)) {
		t.Errorf("he had %d connections and read %q", l.accepted, l.heard.String())
	}
}

// A record of an earlier build names no key: its agent is not even connected to, for it would be told the token in the
// clear.
func TestPeerWithoutAKeyIsNotAsked(t *testing.T) {
	l := listenTap(t)
	defer l.Close()
	c := DialPeer(l.Addr().String(), token)
	defer c.Close()
	if _, err := c.State(patience(t)); !errors.Is(err, errNoKey) {
		t.Errorf("got %v, want errNoKey", err)
	}
	if err := l.Listener.(*net.TCPListener).SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Accept(); err == nil {
		_ = c.Close()
		t.Error("it was connected to")
	}
}

// An agent of an earlier build reads host:port#KEY as the address, dials it, and sends the token nowhere.
func TestEarlierBuildsCannotDialAKey(t *testing.T) {
	l := listenTap(t)
	defer l.Close()
	conn, err := (&net.Dialer{}).DialContext(patience(t), "tcp", registry.JoinPeer(l.Addr().String(), identity(t).Key))
	if err == nil {
		_ = conn.Close()
		t.Error("it reaches the port, and would say the token there without TLS")
	}
}

// TestAttackPlainHTTP: the port answers nothing without TLS, whatever token is shown.
func TestAttackPlainHTTP(t *testing.T) {
	p := servePeer(t, func(*program, io.Reader, io.Writer, io.Writer) ExecExit { return ExecExit{} })
	address, _ := registry.SplitPeer(p.address)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /v1/state HTTP/1.1\r\nHost: agent\r\nAuthorization: Bearer %s\r\n\r\n", token)
	answer, _ := io.ReadAll(conn) // the connection is closed in any case
	if bytes.Contains(answer, []byte("worker-1")) || bytes.Contains(answer, []byte("200 OK")) {
		t.Errorf("got %q", answer)
	}
}

// TestAttackRedirect: a peer of the gang that answers with a redirect leads no agent to another address, such as that
// of a cloud's metadata.
func TestAttackRedirect(t *testing.T) {
	metadata := listenTap(t)
	defer metadata.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	lead := http.RedirectHandler("http://"+metadata.Addr().String()+"/latest", http.StatusTemporaryRedirect)
	id := identity(t)
	go func() { done <- ServePeers(ctx, l, id, lead, slog.New(slog.DiscardHandler)) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	c := DialPeer(registry.JoinPeer(l.Addr().String(), id.Key), token)
	defer c.Close()
	if _, err := c.State(patience(t)); err == nil {
		t.Error("a redirect is taken for a state")
	}
	if err := metadata.Listener.(*net.TCPListener).SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if c, err := metadata.Accept(); err == nil {
		_ = c.Close()
		t.Error("the redirect was followed")
	}
}

// The key follows from token, app and instance, and from nothing else: the next agent of the instance shows the same.
func TestKeyOfAnInstance(t *testing.T) {
	key := func(token, app, instance string) string {
		id, err := NewPeerIdentity(token, app, instance)
		if err != nil {
			t.Fatal(err)
		}
		return id.Key
	}
	own := key("a", "d1", "worker-1")
	if again := key("a", "d1", "worker-1"); again != own || len(own) != 43 {
		t.Errorf("key %q, then %q", own, again)
	}
	for _, other := range []string{key("b", "d1", "worker-1"), key("a", "d2", "worker-1"), key("a", "d1", "worker-2")} {
		if other == own {
			t.Error("another agent has the same key")
		}
	}
	if _, err := NewPeerIdentity("", "d1", "worker-1"); err == nil {
		t.Error("a run without a token gives a key that everybody can make")
	}
}

// TestAttackSocketOfARecord: a record names any socket of this host as an agent's. Nothing is sent to one that is not
// an agent's by its path, nor to the process of another user.
func TestAttackSocketOfARecord(t *testing.T) {
	own := Dir(t.TempDir()).Socket("d1", "worker-1")
	if _, err := DialRecorded(own, "d1", "worker-1"); err != nil {
		t.Errorf("an agent's own path: %v", err)
	}
	long := Dir("/"+strings.Repeat("long", 30)).Socket("d1", "worker-1")
	if _, err := DialRecorded(long, "d1", "worker-1"); err != nil {
		t.Errorf("an agent's short path: %v", err)
	}
	for _, path := range []string{
		"/run/docker.sock", "", "worker-1.sock", "/apps/d2/worker-1.sock", "/apps/d1/worker-2.sock",
		"/run/muster/apps/d1/../d1/worker-1.sock", "/run/muster/apps/d1/worker-1.sock/",
	} {
		if _, err := DialRecorded(path, "d1", "worker-1"); err == nil {
			t.Errorf("%s is taken for the agent's", path)
		}
	}
}

func TestAttackSocketOfAnotherUser(t *testing.T) {
	need.Root(t)
	const nobody = 65534
	dir := t.TempDir()
	path := Dir(dir).Socket("d1", "worker-1")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	for at := filepath.Dir(path); at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o777); err != nil { //nolint:gosec // another user listens there
			t.Log(err)
		}
		if at == dir {
			break
		}
	}
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	listens := make(chan error)
	var l net.Listener
	go func() { // the credentials of a socket are those of the thread that listens
		if err := unix.Bind(socket, &unix.SockaddrUnix{Name: path}); err != nil {
			listens <- err
			return
		}
		// The thread ends with this goroutine, which never unlocks it.
		runtime.LockOSThread()
		if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); no != 0 {
			listens <- no
			return
		}
		listens <- unix.Listen(socket, 4)
	}()
	if err := <-listens; err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(socket), path)
	l, err = net.FileListener(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			heard <- -1
			return
		}
		defer c.Close()
		n, _ := c.Read(make([]byte, 100)) // until the client hangs up
		heard <- n
	}()
	c, err := DialRecorded(path, "d1", "worker-1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.State(patience(t)); !errors.Is(err, errStranger) {
		t.Errorf("got %v, want errStranger", err)
	}
	if n := <-heard; n > 0 {
		t.Errorf("%d bytes were sent to it", n)
	}
}

// serveForAttack answers as an agent with 1,024 descriptors until its stdin ends.
const serveForAttack = "MUSTER_TEST_SERVE"

func TestServeForAttack(t *testing.T) {
	if os.Getenv(serveForAttack) == "" {
		return // it is run by attackedServer
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1024, Max: 1024}); err != nil {
		t.Fatal(err)
	}
	p := servePeer(t, func(*program, io.Reader, io.Writer, io.Writer) ExecExit { return ExecExit{} })
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = Serve(t.Context(), Bounded(port, 4096), http.NotFoundHandler()) }()
	fmt.Println("serves", p.socket, p.address, port.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// attackedServer is that agent in a process of its own: its socket, its port for peers, and one of this host alone.
func attackedServer(t *testing.T) (pid int, socket, peer, port string) {
	t.Helper()
	server := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServeForAttack$") //nolint:gosec // this test
	server.Env = append(os.Environ(), serveForAttack+"=1")
	stdin, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(stdin.Close(), server.Wait()) })

	for lines := bufio.NewScanner(stdout); socket == "" && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "serves %s %s %s", &socket, &peer, &port)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	if socket == "" {
		t.Fatal("the server does not serve")
	}
	return server.Process.Pid, socket, peer, port
}

// TestAttackIdleConnections: 3,000 idle connections to the port of an agent with 1,024 descriptors. Its socket answers
// all the same, and so does the port, to a peer of another address and to one of the attacker's own.
func TestAttackIdleConnections(t *testing.T) {
	_, socket, peer, _ := attackedServer(t)
	address, _ := registry.SplitPeer(peer)
	from := func(n int) *net.Dialer {
		return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n%8))}, Timeout: watchdog}
	}
	for n := range 3000 {
		conn, err := from(n).Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
		defer conn.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // less than the port's own time-outs
	defer cancel()
	local := Dial(socket)
	defer local.Close()
	if _, err := local.State(ctx); err != nil {
		t.Errorf("the agent's socket: %v", err)
	}
	rightful := DialPeer(peer, token)
	defer rightful.Close()
	if _, err := rightful.Silence(ctx); err != nil {
		t.Errorf("a peer of another address: %v", err)
	}
	beside, err := from(0).Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	if got := rawOver(t, beside, peer, "GET", "/v1/peer/silence", bearer+token); got != http.StatusOK {
		t.Errorf("a peer of the attacker's address: %d", got)
	}
}

// Connections that a process holds to the socket of its agent, or another user of the host to the agent's port, leave
// the agent its descriptors: without them it cannot so much as look at the memory of its processes.
func TestAttackTakesAllDescriptors(t *testing.T) {
	pid, socket, _, port := attackedServer(t)
	for at, network := range map[string]string{socket: "unix", port: "tcp"} {
		var last net.Conn
		for n := range 1500 {
			conn, err := net.DialTimeout(network, at, watchdog)
			if err != nil {
				t.Fatalf("connection %d to %s: %v", n, at, err)
			}
			defer conn.Close()
			last = conn
		}
		// They are taken in their order: the last one has its answer when all have been.
		_, err := io.WriteString(last, "GET / HTTP/1.0\r\n\r\n")
		if err = errors.Join(err, last.SetReadDeadline(time.Now().Add(watchdog))); err != nil {
			t.Fatal(err)
		}
		if _, err := last.Read(make([]byte, 1)); err != nil {
			t.Errorf("%s: the newest connection: %v", at, err)
		}
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil || len(open) > 600 {
			t.Errorf("%s: the agent has %d of 1,024 files open, %v", at, len(open), err)
		}
	}
	local := Dial(socket)
	defer local.Close()
	if _, err := local.State(patience(t)); err != nil {
		t.Errorf("the agent's socket: %v", err)
	}
}

// An agent whose state has no end costs its asker no more than the longest state.
func TestAttackStateWithoutEnd(t *testing.T) {
	sent, over := 0, make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(over)
		_, err := io.WriteString(w, `{"app": "`)
		part := bytes.Repeat([]byte("x"), 64<<10)
		for err == nil && sent < 1<<30 {
			_, err = w.Write(part)
			sent += len(part)
		}
	}))
	defer s.Close()
	c := &Client{http: s.Client(), base: s.URL, path: "there"}
	if _, err := c.State(t.Context()); err == nil || !strings.Contains(err.Error(), "agent at there: unexpected EOF") {
		t.Errorf("got %v", err)
	}
	<-over
	if sent > mostState+(16<<20) { // what the sockets hold
		t.Errorf("%d bytes were taken", sent)
	}
}
