package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/status"
)

// serve starts a server for a host with one app, whose run is over, and returns where new links come.
func serve(t *testing.T) (base string, state status.Dir, links chan string) {
	t.Helper()
	return serveWith(t, func(*apps.Lookup) {})
}

// serveWith serves what a lookup finds that is made differently.
func serveWith(t *testing.T, differ func(*apps.Lookup)) (base string, state status.Dir, links chan string) {
	t.Helper()
	state = status.Dir(t.TempDir())
	links = make(chan string, 4)
	addApp(t, state, "d1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Lookup: func(string) (apps.Lookup, error) {
			k := apps.Lookup{State: state, Warn: io.Discard}
			differ(&k)
			return k, nil
		},
		Link: func(url string) { links <- url },
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String(), state, links
}

func addApp(t *testing.T, state status.Dir, app string) {
	t.Helper()
	work := t.TempDir()
	logs := filepath.Join(work, "log", "worker-0")
	text := `{"version": 1, "app": "` + app + `", "name": "x<b>", "run": "1", "registry": "unix:gone.sock", "work_dir": "` + work +
		`", "log_dir": "` + work + `/log", "pid": 4194305, "started": "2026-01-02T03:04:05Z"}`
	for path, text := range map[string]string{filepath.Join(state.App(app), "app.json"): text, filepath.Join(logs, "stdout.log"): "one\ntwo\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// browser is a client that keeps cookies and follows no redirect.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

func get(t *testing.T, c *http.Client, url, host string) (code int, text string, head http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Header
}

// Nothing is shown to who has not opened the link, a link opens once, and no other host name is answered.
func TestWhoMayLook(t *testing.T) {
	base, _, links := serve(t)
	link := <-links
	mine, other := browser(t), browser(t)
	for _, path := range []string{"/", "/apps/d1", "/api/v1/apps", "/api/v1/apps/d1/logs/worker-0/stdout", "/web/main.js", "/api/v1/live"} {
		if code, text, _ := get(t, other, base+path, ""); code != 401 || strings.Contains(text, "d1") {
			t.Errorf("%s without a session: %d %s", path, code, text)
		}
	}
	if code, _, _ := get(t, other, base+"/login?key=no", ""); code != 403 {
		t.Errorf("a wrong key: %d", code)
	}
	if code, _, _ := get(t, mine, link, ""); code != 303 {
		t.Fatalf("the link: %d", code)
	}
	if next := <-links; next == link {
		t.Error("the next link is the one that was used")
	}
	if code, _, _ := get(t, other, link, ""); code != 403 {
		t.Errorf("the link once more: %d", code)
	}
	code, text, head := get(t, mine, base+"/", "")
	if code != 200 || !strings.Contains(text, "<title>muster</title>") ||
		!strings.HasPrefix(head.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") {
		t.Errorf("the page: %d %s %v", code, text, head)
	}
	if code, _, _ := get(t, mine, base+"/api/v1/apps", "evil.example:80"); code != 421 {
		t.Errorf("another host name: %d", code)
	}
	for _, path := range []string{"/web/../server.go", "/web/%2e%2e/server.go", "/api/v1/apps/d1/logs/..%2f..%2fx/stdout"} {
		if code, text, _ := get(t, mine, base+path, ""); code == 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// The API has the apps, one app and its logs, and its errors are JSON with a code of their own.
func TestAPI(t *testing.T) {
	base, _, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	for _, tt := range []struct {
		path string
		code int
		want string
	}{
		{"/api/v1/apps", 200, `"app":"d1"`},
		{"/api/v1/apps/d1", 200, `"phase":"interrupted"`},
		{"/api/v1/apps/d2", 404, `no app \"d2\" on this host`},
		{"/api/v1/apps/d1/logs/worker-0/stdout", 200, "one\ntwo\n"},
		{"/api/v1/apps/d1/logs/worker-0/stdout?tail=1", 200, "two\n"},
		{"/api/v1/apps/d1/logs/worker-0/core", 400, "want stdout, stderr or agent"},
		{"/api/v1/apps/d1/logs/worker-0/stdout?tail=-1", 400, "want a number of lines"},
		{"/api/v1/apps/d1/logs/worker/stdout", 400, "worker"},
	} {
		code, text, _ := get(t, c, base+tt.path, "")
		if code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.path, code, text, tt.code, tt.want)
		}
	}
}

// A feed tells what is there, and each change.
func TestLive(t *testing.T) {
	base, state, links := serve(t)
	c := browser(t)
	get(t, c, <-links, "")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return text
			}
		}
		t.Fatal(lines.Err())
		return ""
	}
	if first := next(); !strings.Contains(first, `"app":"d1"`) || strings.Contains(first, `"app":"d9"`) {
		t.Errorf("first: %s", first)
	}
	addApp(t, state, "d9")
	if second := next(); !strings.Contains(second, `"app":"d9"`) {
		t.Errorf("second: %s", second)
	}
}

// Pages that are open at the end of a server that does not come back are told how things stand then, and that it ends.
func TestEnd(t *testing.T) {
	const ended = "the run is over"
	state := status.Dir(t.TempDir())
	addApp(t, state, "d1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	links := make(chan string, 2)
	server := Server{
		Lookup: func(string) (apps.Lookup, error) { return apps.Lookup{State: state, Warn: io.Discard}, nil },
		Link:   func(link string) { links <- link }, Ended: ended,
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	c := browser(t)
	get(t, c, <-links, "")
	feeds := map[string]*bufio.Scanner{}
	next := func(feed, begins string) string {
		t.Helper()
		for feeds[feed].Scan() {
			if text, ok := strings.CutPrefix(feeds[feed].Text(), begins); ok {
				return text
			}
		}
		t.Fatalf("%s: no line %s: %v", feed, begins, feeds[feed].Err())
		return ""
	}
	for _, feed := range []string{"/api/v1/live", "/api/v1/apps/d1/live"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+feed, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		feeds[feed] = bufio.NewScanner(answer.Body)
		if first := next(feed, "data: "); strings.Contains(first, `"outcome":"stopped"`) {
			t.Errorf("%s: first: %s", feed, first)
		}
	}
	result := status.ResultFile{Version: 1, App: "d1", Run: "1", Ending: status.Ending{Outcome: "stopped"}}
	if err := status.WriteJSON(filepath.Join(state.App("d1"), "result.json"), result); err != nil {
		t.Fatal(err)
	}
	end()
	for feed := range feeds {
		if last := next(feed, "data: "); !strings.Contains(last, `"outcome":"stopped"`) {
			t.Errorf("%s: last: %s", feed, last)
		}
		if got := next(feed, "event: "); got != "end" {
			t.Errorf("%s: got the event %s, want end", feed, got)
		}
		if got := next(feed, "data: "); got != ended {
			t.Errorf("%s: said %q", feed, got)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Who has been told of the list is told of what is different.
func TestNewsSince(t *testing.T) {
	list := func(names ...string) *news {
		all := apps.Listing{Version: 1}
		for _, name := range names {
			app, phase, _ := strings.Cut(name, ":")
			all.Apps = append(all.Apps, apps.Row{App: app, Phase: phase, Name: strings.Repeat("n", 1000)})
		}
		return newsOf(all)
	}
	before := list("a:running", "b:running", "c:done")
	var got struct {
		Apps    []apps.Row
		Changed []apps.Row
		Gone    []string
	}
	read := func(text []byte) {
		t.Helper()
		got.Apps, got.Changed, got.Gone = nil, nil, nil
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
	}
	read(before.since(nil))
	if len(got.Apps) != 3 {
		t.Errorf("first: %+v", got)
	}
	read(list("a:running", "b:done", "d:running").since(before))
	if len(got.Apps) != 0 || len(got.Changed) != 2 || !slices.Equal(got.Gone, []string{"c"}) {
		t.Errorf("then: %+v", got)
	}
	warned := list("a:running", "b:running", "c:done")
	warned.warnings = []string{"left out"}
	if text := string(warned.since(before)); !strings.Contains(text, `"changed":[]`) || !strings.Contains(text, `"warnings":["left out"]`) {
		t.Errorf("a warning: %s", text)
	}
	read(list("x:done").since(before)) // all of it is shorter
	if len(got.Changed)+len(got.Gone) != 4 && len(got.Apps) != 1 {
		t.Errorf("all different: %+v", got)
	}
	if text := newsOf(map[string]string{"error": "gone"}).since(before); string(text) != `{"error":"gone"}` {
		t.Errorf("an error: %s", text)
	}
}
