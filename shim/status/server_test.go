package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/samples"
)

// watchdog is when a test that waits for an event gives up.
const watchdog = 30 * time.Second

// api is an agent's API on a real socket.
type api struct {
	client  *Client
	logDir  string
	signals chan int
	graces  chan *time.Duration
	refuse  error
	exec    func(context.Context, ExecRequest) (Execution, error)
	peers   *Peers // of whoever asks next
	end     func() error
}

func serve(t *testing.T) *api {
	t.Helper()
	a := &api{logDir: t.TempDir(), signals: make(chan int, 1), graces: make(chan *time.Duration, 1)}
	l, err := Listen(filepath.Join(t.TempDir(), "worker-0.sock"))
	if err != nil {
		t.Fatal(err)
	}
	source := Source{
		LogDir: a.logDir,
		State: func() State {
			return State{App: "d1", Instance: Instance{Version: 1, Identity: Identity{Instance: "worker-0"}, Phase: "running"}}
		},
		Silence: func() Silence { return Silence{Inc: "i", Gen: 2, Silence: 1.5} },
		Signal:  func(n int) error { a.signals <- n; return a.refuse },
		Stop:    func(grace *time.Duration) error { a.graces <- grace; return a.refuse },
		Exec:    func(ctx context.Context, ask ExecRequest) (Execution, error) { return a.exec(ctx, ask) },
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := source
		now.Peers = a.peers
		Handler(now).ServeHTTP(w, r)
	})
	go func() { done <- Serve(ctx, l, handler) }()
	a.client = Dial(l.Addr().String())
	a.end = func() error {
		cancel()
		select {
		case err := <-done:
			done <- err
			return err
		case <-time.After(watchdog):
			return errors.New("the server does not end")
		}
	}
	t.Cleanup(func() {
		a.client.Close()
		if err := a.end(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func TestState(t *testing.T) {
	a := serve(t)
	got, err := a.client.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := State{App: "d1", Instance: Instance{Version: 1, Identity: Identity{Instance: "worker-0"}, Phase: "running"}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestSignal(t *testing.T) {
	a := serve(t)
	if err := a.client.Signal(t.Context(), "SIGUSR1"); err != nil {
		t.Fatal(err)
	}
	if got := <-a.signals; got != 10 {
		t.Errorf("got signal %d, want 10", got)
	}
	if err := a.client.Signal(t.Context(), "NONE"); err == nil || !strings.Contains(err.Error(), `"NONE"`) {
		t.Errorf("got %v, want the name refused", err)
	}
	if len(a.signals) > 0 {
		t.Error("a signal without a name was sent")
	}
	a.refuse = errors.New("worker-0 has no process: it is waiting")
	if err := a.client.Signal(t.Context(), "9"); err == nil || !strings.HasPrefix(err.Error(), a.refuse.Error()) {
		t.Errorf("got %v, want %v and what to do", err, a.refuse)
	}
}

func TestStop(t *testing.T) {
	a := serve(t)
	half := 0.5
	for _, grace := range []*float64{nil, &half} {
		if err := a.client.Stop(t.Context(), grace); err != nil {
			t.Fatal(err)
		}
		got := <-a.graces
		if (got == nil) != (grace == nil) || got != nil && *got != time.Second/2 {
			t.Errorf("grace %v, want %v", got, grace)
		}
	}
}

func TestLogs(t *testing.T) {
	a := serve(t)
	var out bytes.Buffer
	if err := a.client.Logs(t.Context(), "stdout", 0, false, &out); err != nil || out.Len() != 0 {
		t.Errorf("a log that is not there yet: got %q, %v, want nothing", out.String(), err)
	}
	if err := os.WriteFile(filepath.Join(a.logDir, "stderr.log"), []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // reading does not drain
		out.Reset()
		if err := a.client.Logs(t.Context(), "stderr", 4, false, &out); err != nil || out.String() != "two\n" {
			t.Errorf("got %q, %v, want two", out.String(), err)
		}
	}
	if err := a.client.Logs(t.Context(), "passwd", 0, false, &out); err == nil || !strings.Contains(err.Error(), "stdout, stderr, agent, events, or side-NAME.stdout") {
		t.Errorf("got %v, want the names that there are", err)
	}
	if err := a.client.Logs(t.Context(), "stderr", -1, false, &out); err == nil {
		t.Error("got no error for a negative offset")
	}
}

// A follower hears of an empty log at once, gets what comes, and ends with the agent.
func TestLogsFollow(t *testing.T) {
	a := serve(t)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := a.client.Logs(t.Context(), "stdout", 0, true, w)
		_ = w.Close()
		done <- err
	}()
	path := filepath.Join(a.logDir, "stdout.log")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4)
	if _, err := io.ReadFull(r, line); err != nil || string(line) != "one\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // it ends with the writer
	if err := a.end(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done: // with or without an error: the agent is gone
		t.Log(err)
	case <-time.After(watchdog):
		t.Fatal("the follower does not end")
	}
}

// Who has asked gets the answer, even if the agent ends while it thinks.
func TestServeAnswersBeforeItEnds(t *testing.T) {
	l, err := Listen(filepath.Join(t.TempDir(), "x.sock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		answer(w, State{App: "d1"})
	})
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, h) }()
	c := Dial(l.Addr().String())
	defer c.Close()
	if got, err := c.State(t.Context()); err != nil || got.App != "d1" {
		t.Errorf("got %v, %v, want the answer", got.App, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServeSaysThatItCannot(t *testing.T) {
	l, err := Listen(filepath.Join(t.TempDir(), "x.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), l, http.NotFoundHandler()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want net.ErrClosed", err)
	}
}

func TestClientOfNobody(t *testing.T) {
	c := Dial(filepath.Join(t.TempDir(), "gone.sock"))
	defer c.Close()
	if _, err := c.State(t.Context()); err == nil || !strings.Contains(err.Error(), "gone.sock") {
		t.Errorf("got %v, want an error that names the socket", err)
	}
}

func TestRequests(t *testing.T) {
	h := Handler(Source{
		State: func() State { return State{} }, Silence: func() Silence { return Silence{Inc: "i", Gen: 2, Silence: 1.5} },
		Samples: func(int64) samples.Table { return samples.Table{} },
		Signal:  func(int) error { return nil }, Stop: func(*time.Duration) error { return nil }, LogDir: t.TempDir(),
	})
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/v1/state", "", 200},
		{"POST", "/v1/state", "", 404},
		{"GET", "/v1/samples", "", 200},
		{"GET", "/v1/samples?since=now", "", 400},
		{"GET", "/v2/state", "", 404},
		{"GET", "/v1/logs/stdout", "", 200},
		{"GET", "/v1/logs/..%2f..%2fetc%2fpasswd", "", 404},
		{"GET", "/v1/logs/stdout?offset=x", "", 400},
		{"POST", "/v1/signal", `{"signal":"TERM"}`, 200},
		{"POST", "/v1/signal", `{"signal":`, 400},
		{"POST", "/v1/signal", ``, 400},
		{"POST", "/v1/stop", ``, 200},
		{"POST", "/v1/stop", `[]`, 400},
		{"POST", "/v1/stop", `{"grace":-1}`, 400},
		{"POST", "/v1/stop", `{"grace":1e300}`, 400},
		{"GET", "/v1/peer/silence", "", 200},
	} {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if r.Code != c.want {
			t.Errorf("%s %s %s: got %d %s, want %d", c.method, c.path, c.body, r.Code, r.Body, c.want)
		}
		var failure failure
		if r.Code >= 400 && (json.Unmarshal(r.Body.Bytes(), &failure) != nil || failure.Error == "") {
			t.Errorf("%s %s: got %s, want {error, hint}", c.method, c.path, r.Body)
		}
	}
}

func TestSilence(t *testing.T) {
	h := Handler(Source{Silence: func() Silence { return Silence{Instance: "worker-1", Inc: "i", Gen: 2, Silence: 1.5, Fenced: true} }})
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest("GET", "/v1/peer/silence", nil))
	if got, want := strings.TrimSpace(r.Body.String()), `{"instance":"worker-1","inc":"i","gen":2,"silence":1.5,"fenced":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
