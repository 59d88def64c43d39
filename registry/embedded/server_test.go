package embedded

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ask sends one request to the server without a network.
func ask(s *Server, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func (s *Server) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range s.watchers.bells {
		n += b.waiting
	}
	for _, b := range s.watchers.prefixes {
		n += b.waiting
	}
	return n
}

func TestCloseAnswersReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		ask(s, "PUT", "/v1/kv/a", "x")
		var readers sync.WaitGroup
		for _, path := range []string{"/v1/kv/a", "/v1/kv/none", "/v1/kv/a?keys", "/v1/kv/a?recurse", "/v1/session/info/none"} {
			readers.Go(func() {
				if got := ask(s, "GET", path+sign(path)+"index=99&wait=10m", "").Code; got != 200 && got != 404 {
					t.Errorf("%s: got %d", path, got)
				}
			})
		}
		synctest.Wait()
		if got := s.waiting(); got != 5 {
			t.Errorf("readers that wait: got %d, want 5", got)
		}
		before := time.Now()
		s.Close()
		readers.Wait()
		if took := time.Since(before); took != 0 {
			t.Errorf("readers ended %s after Close", took)
		}
		if got := s.waiting(); got != 0 {
			t.Errorf("readers left: got %d", got)
		}
	})
}

func sign(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

// TestReadersLeave: a reader that goes away or whose time is over leaves nothing behind.
func TestReadersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for _, path := range []string{"/v1/kv/a?index=9", "/v1/kv/a?index=9&wait=1s", "/v1/kv/a/?keys&index=9", "/v1/kv/a/?keys&index=9&wait=1s"} {
			readers.Go(func() {
				s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil).WithContext(ctx))
			})
		}
		time.Sleep(2 * time.Second)
		if got := s.waiting(); got != 2 {
			t.Errorf("after the short waits: got %d, want 2", got)
		}
		cancel()
		readers.Wait()
		if len(s.watchers.bells)+len(s.watchers.prefixes) != 0 {
			t.Errorf("bells left: %v, %v", s.watchers.bells, s.watchers.prefixes)
		}
	})
}

// TestWaitLengths: Consul's default, its maximum, and the jitter of a sixteenth.
func TestWaitLengths(t *testing.T) {
	for _, c := range []struct {
		wait string
		want time.Duration
	}{{"", 5 * time.Minute}, {"0s", 5 * time.Minute}, {"-1s", 5 * time.Minute}, {"60s", time.Minute}, {"1h", 10 * time.Minute}, {"1ns", 1}} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{})
			defer s.Close()
			begin := time.Now()
			ask(s, "GET", "/v1/kv/a?index=9&wait="+c.wait, "")
			if took := time.Since(begin); took < c.want || took > c.want*17/16 {
				t.Errorf("wait %q: took %s, want %s and up to a sixteenth more", c.wait, took, c.want)
			}
		})
	}
}

// TestSweeper: sessions end at their own time in whatever order they were made and renewed.
func TestSweeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		defer s.Close()
		for _, ttl := range []string{"1h", "20s", "10s", "30s"} {
			id, err := s.createSession(sessionInfo{Node: nodeName, TTL: ttl, Behavior: deleteKeys})
			if err != nil {
				t.Fatal(err)
			}
			ask(s, "PUT", "/v1/kv/"+ttl+"?acquire="+id, "")
			if ttl == "30s" {
				time.Sleep(5 * time.Second)
				ask(s, "PUT", "/v1/session/renew/"+id, "")
			}
		}
		for _, c := range []struct {
			at   time.Duration
			keys string
		}{
			{20*time.Second - 1, `["10s","1h","20s","30s"]`},
			{20 * time.Second, `["1h","20s","30s"]`},
			{40 * time.Second, `["1h","30s"]`},
			{65*time.Second - 1, `["1h","30s"]`},
			{65 * time.Second, `["1h"]`},
			{2 * time.Hour, `[]`},
		} {
			time.Sleep(c.at - time.Since(beginOf(s)))
			synctest.Wait()
			if got := ask(s, "GET", "/v1/kv/?keys", "").Body.String(); got != c.keys {
				t.Errorf("at %s: got %s, want %s", c.at, got, c.keys)
			}
		}
	})
}

// beginOf is when the bubble's clock began: sessions above were made in its first moment.
func beginOf(*Server) time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestNotHere(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	for _, c := range []struct{ method, path, body, name string }{
		{"GET", "/v1/catalog/nodes", "", "GET /v1/catalog/nodes"},
		{"PUT", "/v1/agent/service/register", "{}", "PUT /v1/agent/service/register"},
		{"GET", "/v1/session/node/a", "", "GET /v1/session/node/a"},
		{"GET", "/", "", "GET /"},
		{"PUT", "/v1/txn", `[{"Node":{"Verb":"get"}}]`, "operation Node"},
		{"PUT", "/v1/txn", `[{"Check":{"Verb":"get"}}]`, "operation Check"},
	} {
		w := ask(s, c.method, c.path, c.body)
		if w.Code != http.StatusNotImplemented || !strings.Contains(w.Body.String(), c.name) {
			t.Errorf("%s %s: got %d %s, want 501 with %q", c.method, c.path, w.Code, w.Body, c.name)
		}
	}
	if got := ask(s, "GET", "/v1/kv/a%01", "").Code; got != http.StatusBadRequest {
		t.Errorf("unprintable path: got %d", got)
	}
}

func TestServeUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.sock")
	for range 2 { // the second time over what the first one left
		l, err := ListenUnix(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("socket: got %v, %v, want 0600", info.Mode(), err)
		}
		if _, err := ListenUnix(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another server answers") {
			t.Errorf("second listener: got %v", err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false) // as after SIGKILL
		serveAndStop(t, l, "unix", path)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket that was to stay stale: %v", err)
	}
}

func TestServeLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "localhost:0", "127.0.0.2:0"} {
		l, err := ListenLoopback(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		serveAndStop(t, l, "tcp", l.Addr().String())
	}
}

// serveAndStop ends Serve while a reader waits and sees the reader answered.
func serveAndStop(t *testing.T, l net.Listener, network, addr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, Options{Listener: l}) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	defer transport.CloseIdleConnections()
	c := http.Client{Transport: transport, Timeout: 30 * time.Second}
	get := func(path string) string {
		resp, err := c.Get("http://registry" + path)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(b), err)
	}
	if got := get("/v1/status/leader"); !strings.HasPrefix(got, `200 "`) {
		t.Errorf("leader: got %s", got)
	}
	answered := make(chan string, 1)
	go func() { answered <- get("/v1/kv/none?index=99&wait=10m") }()
	cancel()
	if err := <-served; err != nil {
		t.Errorf("serve: got %v", err)
	}
	got := <-answered // the 404 of the closing server, or nobody there: not the client's time-out
	if strings.Contains(got, "Client.Timeout") {
		t.Errorf("reader: got %s", got)
	}
}

func TestListenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		listen func(context.Context, string) (net.Listener, error)
		addr   string
		text   string
	}{
		{ListenLoopback, "0.0.0.0:0", "want a unix socket or a loopback address"},
		{ListenLoopback, ":0", "want a unix socket or a loopback address"},
		{ListenLoopback, "[::]:0", "want a unix socket or a loopback address"},
		{ListenLoopback, "192.0.2.1:0", "want a unix socket or a loopback address"},
		{ListenLoopback, "example.test:0", "want a unix socket or a loopback address"},
		{ListenLoopback, "127.0.0.1", "missing port"},
		{ListenUnix, file, "want a socket or nothing"},
		{ListenUnix, filepath.Join(dir, strings.Repeat("x", 108)), "want at most 107"},
		{ListenUnix, filepath.Join(dir, "no", "sock"), "no such file or directory"},
	} {
		l, err := c.listen(t.Context(), c.addr)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("listen on %s: got %v, want %q", c.addr, err, c.text)
		}
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), Options{Listener: l}); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("serve on every address: got %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the refused listener is still open")
	}
}
