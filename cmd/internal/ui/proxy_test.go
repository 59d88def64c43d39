package ui

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/view"
	"github.com/muster-agent/muster/shim/gate"
	"github.com/muster-agent/muster/shim/status"
)

// board is a page of an app: it says what it was asked, and echoes what a websocket says.
func board(t *testing.T) *url.URL {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/x/", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "theirs", Value: "1", Domain: "localhost", Path: "/"})
		http.SetCookie(w, &http.Cookie{Name: "__Host-" + sessionCookie + "_1", Value: "tossed", Path: "/"})
		w.Header().Set("Strict-Transport-Security", "max-age=1")
		fmt.Fprintf(w, "%s %s host=%s origin=%s cookie=%s forwarded=%s", r.Method, r.URL, r.Host, r.Header.Get("Origin"),
			r.Header.Get("Cookie"), r.Header.Get("X-Forwarded-Host"))
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/x/there", http.StatusFound)
	})
	mux.Handle("/echo", websocket.Handler(func(c *websocket.Conn) { _, _ = io.Copy(c, c) }))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// addPages makes d1's run one of ps-0 that exports a board.
func addPages(t *testing.T, state status.Dir, at *url.URL) {
	t.Helper()
	text := `{"version": 1, "app": "d1", "run": "1", "outcome": "succeeded", "instances": [{"instance": "ps-0", "component": "ps", "host": "` +
		at.Hostname() + `", "ports": {"side.board": ` + at.Port() + `}, "exports": {"ps.board": "http://` + at.Host + `/x/", "ps.other": "http://` +
		at.Hostname() + `:1/", "ps.plain": "` + at.Host + `"}}]}`
	if err := os.WriteFile(filepath.Join(state.App("d1"), "result.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A page of an app has an origin of its own: what it, and pages elsewhere, may ask and see.
func TestPage(t *testing.T) {
	base, state, links := serve(t)
	there := board(t)
	addPages(t, state, there)
	const entry = "/apps/d1/proxy/ps-0/ps.board"
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	own := page{"d1", "ps-0", "ps.board"}.label() + ".localhost:" + port

	mine := browser(t)
	if code, _, _ := get(t, mine, base+entry, ""); code != 401 {
		t.Errorf("the link without a session: %d", code)
	}
	if code, _, _ := get(t, mine, <-links, ""); code != 303 {
		t.Fatal("no session")
	}
	_, _, head := get(t, mine, base+entry, "")
	open := head.Get("Location")
	if !strings.HasPrefix(open, "http://"+own+openPath+"?key=") {
		t.Fatalf("leads to %s, want %s", open, own)
	}
	type heads map[string]string
	ask := func(method, path string, h heads) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = own
		for name, value := range h {
			r.Header.Set(name, value)
		}
		answer, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text), answer.Header
	}
	if code, text, _ := ask("GET", "/x/", nil); code != 403 || strings.Contains(text, "host=") {
		t.Errorf("without a cookie: %d %s", code, text)
	}
	if code, _, head := ask("GET", "/x/", heads{"Sec-Fetch-Mode": "navigate"}); code != 303 || head.Get("Location") != base+entry {
		t.Errorf("a bookmark: %d %s", code, head.Get("Location"))
	}
	enter := strings.TrimPrefix(open, "http://"+own)
	code, _, head := ask("GET", enter, nil)
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	if code != 303 || head.Get("Location") != "/x/" || !strings.Contains(head.Get("Set-Cookie"), "HttpOnly; SameSite=Lax") {
		t.Fatalf("the key: %d %v", code, head)
	}
	if code, _, _ := ask("GET", enter, nil); code != 403 {
		t.Errorf("the key once more: %d", code)
	}
	for _, tt := range []struct {
		what, method, path string
		heads              heads
		code               int
		says               string
	}{
		{"a look", "GET", "/x/a?b=c", heads{"Cookie": cookie + "; its=2; " + sessionCookie + "=s"}, 200, "GET /x/a?b=c host=" + there.Host + " origin= cookie=its=2 forwarded=" + own},
		{"its own act", "POST", "/x/", heads{"Cookie": cookie, "Origin": "http://" + own}, 200, "POST /x/ host=" + there.Host + " origin=http://" + there.Host},
		{"an act of the ui's page", "POST", "/x/", heads{"Cookie": cookie, "Origin": base}, 403, "only this page itself"},
		{"an act of another page", "POST", "/x/", heads{"Cookie": cookie, "Origin": "http://evil.test"}, 403, "only this page itself"},
		{"a look of another page", "GET", "/x/", heads{"Cookie": cookie, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403, "another page may lead here"},
		{"a link elsewhere", "GET", "/x/", heads{"Cookie": cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200, "GET /x/"},
		{"a frame of another page", "GET", "/x/", heads{"Cookie": cookie, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403, "another page may lead here"},
		{"a form elsewhere", "POST", "/x/", heads{"Cookie": cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403, "another page"},
		{"a wrong cookie", "GET", "/x/", heads{"Cookie": pageCookie + "_" + port + "=no"}, 403, "Open this page by its link"},
		{"the ui's API at its name", "GET", "/api/v1/apps", heads{"Cookie": cookie}, 404, ""},
	} {
		code, text, head := ask(tt.method, tt.path, tt.heads)
		if code != tt.code || !strings.Contains(text, tt.says) {
			t.Errorf("%s: %d %s, want %d %s", tt.what, code, text, tt.code, tt.says)
		}
		if got := head.Values("Set-Cookie"); code == 200 && (len(got) != 1 || got[0] != "theirs=1; Path=/") || head.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: cookies %q, head %v", tt.what, got, head)
		}
	}
	if _, _, head := ask("GET", "/away", heads{"Cookie": cookie}); head.Get("Location") != "http://"+own+"/x/there" {
		t.Errorf("leads away to %s", head.Get("Location"))
	}

	// What runs in the page's origin has no way to the ui's session.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/v1/apps/d1/stop", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "http://"+own)
	r.Header.Set("Content-Type", "application/json")
	answer, err := mine.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != 403 {
		t.Errorf("the page stops the app: %d", answer.StatusCode)
	}

	for path, want := range map[string]int{
		"/apps/d1/proxy/ps-0/ps.other": 403, "/apps/d1/proxy/ps-0/ps.plain": 400, "/apps/d1/proxy/ps-0/none": 404,
		"/apps/d1/proxy/ps-9/ps.board": 404, "/apps/d9/proxy/ps-0/ps.board": 404, entry + "/x/a?b=1": 303,
	} {
		if code, text, _ := get(t, mine, base+path, ""); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, text, want)
		}
	}

	for origin, want := range map[string]bool{"http://" + own: true, base: false} {
		echo, err := talk(t, base, own, origin, cookie)
		if (err == nil && echo == "hello") != want {
			t.Errorf("a websocket of %s: %q, %v", origin, echo, err)
		}
	}
}

// talk says hello through a websocket and returns what came back.
func talk(t *testing.T, base, own, origin, cookie string) (string, error) {
	t.Helper()
	conf, err := websocket.NewConfig("ws://"+own+"/echo", origin)
	if err != nil {
		t.Fatal(err)
	}
	conf.Header.Set("Cookie", cookie)
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ws, err := websocket.NewClient(conf, conn)
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(ws, "hello"); err != nil {
		return "", err
	}
	echo := make([]byte, 5)
	_, err = io.ReadFull(ws, echo)
	return string(echo), err
}

// The page of a cluster shows pages of apps only where it has names for them, reaches nothing of its own host, and lets
// who may only look do no more than that.
func TestPageOfACluster(t *testing.T) {
	state := status.Dir(t.TempDir())
	addApp(t, state, "d1")
	there := board(t)
	addPages(t, state, there)
	reader, line, err := NewToken("ann", false)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{
		base: "https://muster.test", host: "muster.test", Access: Access{Tokens: TokenFile{Path: path}},
		Lookup: func(string) (apps.Lookup, error) { return apps.Lookup{State: state, Warn: io.Discard}, nil },
	}
	h := s.handler()
	do := func(host, path, cookie string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+path, nil)
		r.Header.Set("Authorization", "Bearer "+reader)
		r.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := do("muster.test", "/apps/d1/proxy/ps-0/ps.board", ""); w.Code != 403 || !strings.Contains(w.Body.String(), "--apps-url") {
		t.Errorf("without names: %d %s", w.Code, w.Body)
	}
	s.AppsURL = "https://*.apps.test"
	w := do("muster.test", "/apps/d1/proxy/ps-0/ps.board", "")
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != 303 || !strings.HasSuffix(to.Host, ".apps.test") {
		t.Fatalf("leads to %s: %d %s", to, w.Code, w.Body)
	}
	w = do(to.Host, to.RequestURI(), "")
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	if !strings.Contains(w.Header().Get("Set-Cookie"), "Secure") {
		t.Errorf("a cookie for plain HTTP: %s", w.Header().Get("Set-Cookie"))
	}
	if w := do(to.Host, "/x/", cookie); w.Code != 502 || !strings.Contains(w.Body.String(), "no address of another host") {
		t.Errorf("a page at this host's loopback: %d %s", w.Code, w.Body)
	}
	if w := do("other.apps.test", "/x/", cookie); w.Code != 403 {
		t.Errorf("another page with the cookie: %d", w.Code)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if w := do(to.Host, "/x/", cookie); w.Code != 403 {
		t.Errorf("after the token was taken away: %d %s", w.Code, w.Body)
	}
}

func TestMayPage(t *testing.T) {
	s := &Server{AppsURL: "https://*.apps.test"}
	for _, tt := range []struct {
		method  string
		upgrade bool
		who     caller
		ok      bool
	}{
		{"GET", false, caller{}, true},
		{"HEAD", false, caller{}, true},
		{"POST", false, caller{}, false},
		{"GET", true, caller{}, false},
		{"POST", false, caller{Act: true}, true},
		{"GET", true, caller{Act: true}, true},
	} {
		r := httptest.NewRequest(tt.method, "/", nil)
		r.Header.Set("Origin", "https://p1.apps.test")
		if tt.upgrade {
			r.Header.Set("Upgrade", "websocket")
		}
		if err := s.mayPage(r, "p1", tt.who); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestTarget(t *testing.T) {
	for value, want := range map[string]string{
		"http://h1:8080":                   "http://h1:8080/",
		"http://h1:8080/a/b":               "http://h1:8080/a/b",
		"http://h1:8081":                   "no port of this instance",
		"http://h2:8080":                   "no port of this instance",
		"http://h1":                        "no port of this instance",
		"https://h1:8080":                  "want an http:// URL",
		"http://me@h1:8080":                "want an http:// URL",
		"file:///etc/passwd":               "want an http:// URL",
		"http://169.254.169.254/meta-data": "no port of this instance",
	} {
		v := view.App{Instances: []status.Instance{{
			Identity: status.Identity{Instance: "w-0"},
			Location: status.Location{Host: "h1", Ports: map[string]int{"p": 8080}, Exports: map[string]string{"g.u": value}},
		}}}
		u, err := exported(v, page{"a", "w-0", "g.u"})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = u.String()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// What is forwarded goes to the address where the agent has answered, whatever the page's name leads to.
func TestForwardDialsTheAgentsAddress(t *testing.T) {
	there := board(t)
	s := &Server{Link: func(string) {}, host: "127.0.0.1:1", base: "http://127.0.0.1:1"}
	w := httptest.NewRecorder()
	named := *there
	named.Host = "metadata.example:" + there.Port()
	s.forward(w, httptest.NewRequest(http.MethodGet, "http://p.localhost:1/x/", nil), "p",
		knownPage{page: page{"d1", "ps-0", "x"}, target: target{URL: &named, dial: there.Host}})
	if want := "host=" + named.Host; w.Code != 200 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
}

// The agent that asks for a page's key takes what is forwarded for the page's own acts and connections.
func TestForwardThroughTheGate(t *testing.T) {
	there := board(t)
	inner, err := strconv.Atoi(there.Port())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var served sync.WaitGroup
	t.Cleanup(func() { cancel(); served.Wait() })
	served.Go(func() {
		err := gate.Serve(ctx, l, gate.Page{Name: "board", Port: inner, Key: "k", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
		}
	})
	s := &Server{Link: func(string) {}, host: "127.0.0.1:1", base: "http://127.0.0.1:1"}
	const own = "p.localhost:1"
	to := target{URL: &url.URL{Scheme: "http", Host: "localhost:" + portOf(t, l)}, dial: l.Addr().String(), key: "k", inner: inner}
	ui := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.forward(w, r, "p", knownPage{page: page{"d1", "ps-0", "x"}, target: to})
	}))
	t.Cleanup(ui.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ui.URL+"/x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = own
	r.Header.Set("Origin", "http://"+own)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the page's own act: %s", answer.Status)
	}
	if echo, err := talk(t, ui.URL, own, "http://"+own, ""); err != nil || echo != "hello" {
		t.Errorf("the page's websocket: %q, %v", echo, err)
	}
}

func portOf(t *testing.T, l net.Listener) string {
	t.Helper()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
