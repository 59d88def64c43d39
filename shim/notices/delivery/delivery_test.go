package delivery

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/notices"
)

const watchdog = 30 * time.Second

// heard is what a sender of a test warned of.
type heard struct {
	mu    sync.Mutex
	texts []string
}

func (h *heard) warn(_, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, text)
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.texts, "\n")
}

// told sends one message and returns what was warned of by the end of the sender.
func told(t *testing.T, to Target) string {
	t.Helper()
	var h heard
	if to.Limit == 0 {
		to.Limit = watchdog
	}
	s := New(t.Context(), Config{
		Log: slog.New(slog.DiscardHandler), Warn: h.warn, Mended: func(string, string) {}, Target: to,
	})
	s.Send(notices.Message{ID: "d1/r/verdict"})
	s.Close()
	return h.all()
}

// server answers with what the test says, over TLS, and counts.
func server(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) (to Target, count func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		now := n
		mu.Unlock()
		answer(now, w, r)
	}))
	t.Cleanup(s.Close)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return Target{URL: s.URL + "/hook/token", CAFile: ca}, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func TestPost(t *testing.T) {
	header := filepath.Join(t.TempDir(), "header")
	if err := os.WriteFile(header, []byte("Authorization: Bearer b\n\nX-Site: one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got notices.Message
	var sent http.Header
	to, count := server(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		sent = r.Header
		_ = json.NewDecoder(r.Body).Decode(&got)
	})
	to.HeaderFile = header
	if bad := told(t, to); bad != "" || got.ID != "d1/r/verdict" || count() != 1 {
		t.Fatalf("got %d posts, %+v, %s", count(), got, bad)
	}
	if sent.Get("Authorization") != "Bearer b" || sent.Get("X-Site") != "one" || sent.Get("Content-Type") != "application/json" {
		t.Errorf("got headers %v", sent)
	}
}

func TestFailures(t *testing.T) {
	status := func(codes ...int) func(int, http.ResponseWriter, *http.Request) {
		return func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(codes[min(n, len(codes))-1]) }
	}
	for name, tt := range map[string]struct {
		answer func(int, http.ResponseWriter, *http.Request)
		change func(*Target)
		posts  int    // 0: any number
		want   string // in the warning; "": it is told
	}{
		"500 twice": {status(500, 503, 200), nil, 3, ""},
		"refused":   {status(403), nil, 1, "got 403 Forbidden, want 2xx (1 of 5 tries)"},
		"a redirect": {func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, nil, 1, "got 307 Temporary Redirect, want 2xx"},
		"hangs": {func(_ int, _ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else its end is not noticed
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // else the client could read an answer while it closes
		}, func(to *Target) { to.Limit = 100 * time.Millisecond }, 0, "deadline exceeded"},
		"another CA": {status(200), func(to *Target) { to.CAFile = "" }, 0, "certificate"},
		"no header":  {status(200), func(to *Target) { to.HeaderFile = "/nowhere" }, 0, "notify.header_file: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, count := server(t, tt.answer)
			if tt.change != nil {
				tt.change(&to)
			}
			bad := told(t, to)
			if tt.posts > 0 && count() != tt.posts || (bad == "") != (tt.want == "") || !strings.Contains(bad, tt.want) {
				t.Errorf("got %d posts and %q, want %d and %q", count(), bad, tt.posts, tt.want)
			}
			if strings.Contains(bad, "token") {
				t.Errorf("the warning shows the URL's path: %s", bad)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	if bad := told(t, Target{URL: "http://127.0.0.1:1/hook"}); !strings.Contains(bad, "post to 127.0.0.1:1: dial tcp") ||
		strings.Contains(bad, "hook") {
		t.Error(bad)
	}
}

// TestCommandGetsTheMessageAlone: its environment has nothing of the agent's.
func TestCommandGetsTheMessageAlone(t *testing.T) {
	t.Setenv("MUSTER_AGENT_TOKEN", "secret")
	out := filepath.Join(t.TempDir(), "out")
	if bad := told(t, Target{Command: []string{"/bin/sh", "-c", "cat >$0; env >>$0", out}}); bad != "" {
		t.Fatal(bad)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), `"id":"d1/r/verdict"`) || strings.Contains(string(text), "secret") {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestHangingCommandIsKilled: with what it has started.
func TestHangingCommandIsKilled(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	bad := told(t, Target{
		Command: []string{"/bin/sh", "-c", "sleep 600 & echo $! >$0; wait", pid}, Limit: 500 * time.Millisecond,
	})
	if !strings.Contains(bad, "/bin/sh has not ended within 500ms and was killed") {
		t.Error(bad)
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscan(string(text), &child); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(watchdog); lives(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("its child %d still lives", child)
		}
	}
}

// lives tells whether a process runs; a zombie, which waits for its parent, does not.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && syscall.Kill(pid, 0) == nil && !strings.Contains(string(stat), ") Z ")
}

// TestFullQueue: nobody waits for a notifier that takes nothing.
func TestFullQueue(t *testing.T) {
	var h heard
	s := New(t.Context(), Config{
		Log: slog.New(slog.DiscardHandler), Warn: h.warn, Mended: func(string, string) {},
		Target: Target{Command: []string{"/bin/sleep", "600"}, Limit: watchdog},
	})
	for i := range 2 * mostQueued {
		s.Send(notices.Message{ID: fmt.Sprint(i)})
	}
	s.stop() // the end of the agent's patience
	s.Close()
	if !strings.Contains(h.all(), "64 messages wait already") {
		t.Error(h.all())
	}
}
