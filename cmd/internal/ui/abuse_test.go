package ui

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
)

// Paths that lead elsewhere give what is there for everybody, or nothing.
func TestPathTricks(t *testing.T) {
	base, _, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	for _, path := range []string{
		"/web/../auth.go", "/web/%2e%2e/auth.go", "/web/..%2f..%2f..%2fetc/passwd", "/web/%00", "//etc/passwd",
		"/api/v1/apps/..%2f..%2fetc/logs/worker-0/stdout", "/api/v1/apps/d1/logs/..%2f..%2fx-0/stdout",
		"/api/v1/apps/d1/logs/worker-0/..%2fevents.jsonl", "/api/v1/apps/d1/logs/worker-0/events.jsonl",
		"/api/v1/apps/d1%00/timeline", "/login/../web/main.js",
	} {
		code, text, _ := get(t, c, base+path, "")
		if code == 200 || strings.Contains(text, "root:") || strings.Contains(text, "package ui") {
			t.Errorf("%s: %d %.80s", path, code, text)
		}
	}
}

// What an app has written comes as plain text, whatever it is; the page sets it as text.
func TestLogsAreText(t *testing.T) {
	base, state, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	hostile := "<script>alert(1)</script>\x1b]0;owned\x07\x1b[2J\r\n"
	addApp(t, state, "d7")
	log := logOf(t, state, "d7")
	if err := os.WriteFile(log, []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	code, text, head := get(t, c, base+"/api/v1/apps/d7/logs/worker-0/stdout", "")
	if code != 200 || text != hostile || head.Get("Content-Type") != "text/plain; charset=utf-8" || head.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %q %v", code, text, head)
	}
}

// A reader that takes nothing is left after a while, and holds no more of a log than its connection does.
func TestSlowReader(t *testing.T) {
	base, state, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	const size = 64 << 20
	log := logOf(t, state, "d1")
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("x"), 1<<20)
	line[len(line)-1] = '\n'
	for range size / len(line) {
		if _, err := f.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var readers []net.Conn
	for range 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/apps/d1/logs/worker-0/stdout?tail=100000&follow=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range c.Jar.Cookies(r.URL) {
			r.AddCookie(cookie)
		}
		conn, err := net.Dial("tcp", r.URL.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReaderSize(conn, 16).Peek(12); err != nil { // it has begun to answer
			t.Fatal(err)
		}
		readers = append(readers, conn)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d readers that take nothing hold %d MiB", len(readers), grown>>20)
	}
}

// logOf is the log of worker-0 of an app that addApp has added.
func logOf(t *testing.T, state interface{ App(string) string }, app string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(state.App(app), "app.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `"log_dir": "`)
	dir, _, _ := strings.Cut(rest, `"`)
	return filepath.Join(dir, "worker-0", "stdout.log")
}

// Connections that have not shown who asks crowd out each other, and nobody who has.
func TestManyConnections(t *testing.T) {
	base, _, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	host := strings.TrimPrefix(base, "http://")
	mine, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	reader := bufio.NewReader(mine)
	ask := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range c.Jar.Cookies(r.URL) {
			r.AddCookie(cookie)
		}
		if err := r.Write(mine); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(reader, r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	if code := ask(); code != 200 {
		t.Fatalf("alone: %d", code)
	}
	var idle []net.Conn
	defer func() {
		for _, conn := range idle {
			_ = conn.Close()
		}
	}()
	for range 2000 {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			break // this test's own descriptors
		}
		idle = append(idle, conn)
	}
	if code, _, _ := get(t, c, base+"/api/v1/apps", ""); code != 200 {
		t.Errorf("beside %d idle connections: %d", len(idle), code)
	}
	if code := ask(); code != 200 {
		t.Errorf("on a connection that was there before: %d", code)
	}
	open := 0
	for _, conn := range idle {
		_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond)) // it is open
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	if most := mostConnections / 4; open > most {
		t.Errorf("%d connections of one stranger are open, want at most %d", open, most)
	}
}

// A body, a head or a token that is too long is refused and not kept.
func TestTooLong(t *testing.T) {
	base, _, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/v1/apps/d1/stop", io.LimitReader(zeros{}, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", base)
	answer, err := c.Do(r)
	if err == nil {
		defer answer.Body.Close()
		if answer.StatusCode < 400 {
			t.Errorf("a body of 1 GiB: %s", answer.Status)
		}
	}
	r = httptest.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/apps", nil)
	r.RequestURI = ""
	r.Header.Set("Authorization", "Bearer "+strings.Repeat("x", 64<<10))
	if answer, err := c.Do(r); err == nil {
		defer answer.Body.Close()
		if answer.StatusCode < 400 {
			t.Errorf("a head of 64 KiB: %s", answer.Status)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A body that never comes holds no connection, also of one who has not logged in.
func TestBodyThatNeverComes(t *testing.T) {
	t.Parallel()
	base, _, _ := serve(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	host := strings.TrimPrefix(base, "http://")
	if _, err := io.WriteString(conn, "POST /login HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 10\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(3 * patience)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !answer.Close {
		t.Errorf("%s, to be closed: %v", answer.Status, answer.Close)
	}
}

// Slider's stop takes the right to act by whatever path it is asked.
func TestReaderStopsNothing(t *testing.T) {
	s := &Server{Lookup: func(string) (apps.Lookup, error) { t.Error("an app was looked up"); return apps.Lookup{}, nil }}
	r := httptest.NewRequest(http.MethodGet, "/proxy/d1/ws/v1/slider/application%2F%2Faction/stop", nil)
	r = r.WithContext(context.WithValue(t.Context(), callerKey{}, caller{Name: "ann"}))
	if err := (asked{s, r}).Stop(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "ann may look at apps") {
		t.Errorf("got %v", err)
	}
}

// A link that was clicked elsewhere acts on nothing, though the browser sends its cookie with it.
func TestClickedLink(t *testing.T) {
	s := &Server{Link: func(string) {}}
	for site, may := range map[string]bool{"same-origin": true, "none": false, "same-site": false, "cross-site": false, "": true} {
		r := httptest.NewRequest(http.MethodGet, "/proxy/d1/ws/app/signal/9", nil)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: "x"})
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		r = r.WithContext(context.WithValue(t.Context(), callerKey{}, caller{Act: true, browser: true}))
		if err := s.mayActBySeed(r); (err == nil) != may {
			t.Errorf("%q: %v", site, err)
		}
	}
}

// A reader that takes nothing is left, whatever it is sent; one that reads is not.
func TestReaderIsLeft(t *testing.T) {
	const soon = time.Second / 5
	for _, tt := range []struct {
		what    string
		answer  func(w http.ResponseWriter) error
		each    time.Duration
		reads   bool
		refused bool
	}{
		{"a value", func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, 64<<20)); return err }, soon, false, true},
		{"a file", func(w http.ResponseWriter) error { _, err := io.CopyN(w, zeros{}, 64<<20); return err }, soon, false, true},
		{"a stream", func(w http.ResponseWriter) error { _, err := io.CopyN(flusher{w}, zeros{}, 64<<20); return err }, soon, false, true},
		{"a value, read", func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, 64<<20)); return err }, time.Minute, true, false},
	} {
		ended := make(chan error, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			ended <- tt.answer(patient{w, tt.each})
		}))
		defer s.Close()
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if tt.reads {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
		select {
		case err := <-ended:
			if (err != nil) != tt.refused {
				t.Errorf("%s: %v", tt.what, err)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%s: the reader is waited for", tt.what)
		}
	}
}
