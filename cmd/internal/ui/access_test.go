package ui

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/status"
)

func TestParseTokens(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"# who\n\nann read " + sum + "\n":   "",
		"ann act " + sum:                    "",
		"ann " + sum:                        "f:1: want NAME, read or act",
		"\nann write " + sum:                "f:2: want NAME",
		"ann read " + sum[2:]:               "f:1: want NAME",
		"ann read " + sum[:62] + "zz":       "f:1: want NAME",
		"ann\x1b read " + sum:               "f:1: want NAME",
		"ann read " + sum + " 2030-01-01\n": "f:1: want NAME",
	} {
		all, err := parseTokens("f", []byte(text))
		if want == "" && (err != nil || len(all) != 1 || all[0].Name != "ann") {
			t.Errorf("%q: %v, %v", text, all, err)
		}
		if want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The word of a proxy counts only from its own address, and in one header.
func TestProxied(t *testing.T) {
	a := Access{Header: "X-Forwarded-User", Proxies: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Actors: []string{"bob"}}
	for _, tt := range []struct {
		from string
		user []string
		want caller
		ok   bool
	}{
		{"10.1.2.3:80", []string{"ann"}, caller{Name: "ann"}, true},
		{"10.1.2.3:80", []string{"bob"}, caller{Name: "bob", Act: true}, true},
		{"[::ffff:10.1.2.3]:80", []string{"bob"}, caller{Name: "bob", Act: true}, true},
		{"@", []string{"ann"}, caller{Name: "ann"}, true}, // a unix socket
		{"10.2.2.3:80", []string{"bob"}, caller{}, false},
		{"127.0.0.1:80", []string{"bob"}, caller{}, false},
		{"10.1.2.3:80", nil, caller{}, false},
		{"10.1.2.3:80", []string{""}, caller{}, false},
		{"10.1.2.3:80", []string{"ann", "bob"}, caller{}, false},
		{"10.1.2.3:80", []string{"a b"}, caller{}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = tt.from
		for _, u := range tt.user {
			r.Header.Add(a.Header, u)
		}
		if got, ok := a.proxied(r); got != tt.want || ok != tt.ok {
			t.Errorf("%s %q: %+v, %v", tt.from, tt.user, got, ok)
		}
	}
}

// A cluster's page shows nothing without a token, lets one that may look not act, and takes an act from its own page
// alone.
func TestRights(t *testing.T) {
	state := status.Dir(t.TempDir())
	addApp(t, state, "d1")
	path := filepath.Join(t.TempDir(), "tokens")
	reader, readLine, err := NewToken("ann", false)
	if err != nil {
		t.Fatal(err)
	}
	actor, actLine, err := NewToken("bob", true)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string, mode os.FileMode, at int64) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write(readLine+"\n"+actLine+"\n", 0o600, 1)
	s := &Server{
		base: "https://muster.test", host: "muster.test", Access: Access{Tokens: TokenFile{Path: path}},
		Lookup: func(string) (apps.Lookup, error) { return apps.Lookup{State: state}, nil },
	}
	h := s.handler()
	type head map[string]string
	do := func(method, path, body string, heads head) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "https://muster.test"+path, strings.NewReader(body))
		for k, v := range heads {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const stopPath = "/api/v1/apps/d1/stop"
	const holdPath = "/api/v1/apps/d1/instances/worker-0/hold"
	const keyPath = "/api/v1/apps/d1/key"
	const signalPath = "/proxy/d1/ws/app/signal/10"
	kind := "application/json"
	for _, tt := range []struct {
		what, method, path string
		heads              head
		code               int
		says               string
	}{
		{"nobody", "GET", "/api/v1/apps", nil, 401, "Who asks is not known"},
		{"nobody's browser", "GET", "/", head{"Sec-Fetch-Mode": "navigate"}, 303, ""},
		{"a wrong token", "GET", "/api/v1/apps", head{"Authorization": "Bearer " + actor + "x"}, 401, ""},
		{"no token", "GET", "/api/v1/apps", head{"Authorization": "Bearer "}, 401, ""},
		{"who may look", "GET", "/api/v1/apps", head{"Authorization": "Bearer " + reader}, 200, `"app":"d1"`},
		{"who am I", "GET", "/api/v1/me", head{"Authorization": "Bearer " + reader}, 200, `{"name":"ann","act":false}`},
		{"a browser that may look", "GET", "/api/v1/apps", head{"Cookie": s.cookie(sessionCookie) + "=" + reader}, 200, `"app":"d1"`},
		{"who may look acts", "POST", stopPath, head{"Authorization": "Bearer " + reader, "Content-Type": kind}, 403, "ann may look at apps"},
		{"a program acts", "POST", stopPath, head{"Authorization": "Bearer " + actor, "Content-Type": kind}, 502, "d1: no agent on this host answers"},
		{"the own page acts", "POST", stopPath, head{"Cookie": s.cookie(sessionCookie) + "=" + actor, "Content-Type": kind, "Origin": "https://muster.test"}, 502, "d1: no agent"},
		{"a stranger's page acts", "POST", stopPath, head{"Cookie": s.cookie(sessionCookie) + "=" + actor, "Content-Type": kind, "Origin": "https://evil.test"}, 403, "only this server's own page"},
		{"a sandboxed page acts", "POST", stopPath, head{"Cookie": s.cookie(sessionCookie) + "=" + actor, "Content-Type": kind, "Origin": "null"}, 403, "only this server's own page"},
		{"a page without an origin acts", "POST", stopPath, head{"Cookie": s.cookie(sessionCookie) + "=" + actor, "Content-Type": kind}, 403, "only this server's own page"},
		{"a form acts", "POST", stopPath, head{"Cookie": s.cookie(sessionCookie) + "=" + actor, "Content-Type": "text/plain", "Origin": "https://muster.test"}, 400, "want application/json"},
		{"an app of no name", "POST", "/api/v1/apps/..%2fd1/stop", head{"Authorization": "Bearer " + actor, "Content-Type": kind}, 400, "app"},
		{"who may look holds", "POST", holdPath, head{"Authorization": "Bearer " + reader, "Content-Type": kind}, 403, "ann may look at apps"},
		{"who may look takes a key", "POST", keyPath, head{"Authorization": "Bearer " + reader, "Content-Type": kind}, 403, "ann may look at apps"},
		{"a key without a registry", "POST", keyPath, head{"Authorization": "Bearer " + actor, "Content-Type": kind}, 502, "who may log in stands there"},
		{"another app", "POST", "/api/v1/apps/d9/stop", head{"Authorization": "Bearer " + actor, "Content-Type": kind}, 404, "d9"},
		{"HBox's signal by who may look", "GET", signalPath, head{"Authorization": "Bearer " + reader}, 403, "ann may look at apps"},
		{"HBox's signal by a program", "GET", signalPath, head{"Authorization": "Bearer " + actor}, 200, "FAILED"},
		{"HBox's signal by a program with a cookie", "GET", signalPath, head{"Cookie": s.cookie(sessionCookie) + "=" + actor}, 403, "only this server's own page"},
		{"HBox's signal by a stranger's page", "GET", signalPath, head{"Cookie": s.cookie(sessionCookie) + "=" + actor, "Sec-Fetch-Site": "cross-site"}, 403, "only this server's own page"},
		{"HBox's signal by a page of a sister host", "GET", signalPath, head{"Cookie": s.cookie(sessionCookie) + "=" + actor, "Sec-Fetch-Site": "same-site"}, 403, "only this server's own page"},
		{"HBox's save by who may look", "GET", "/proxy/d1/ws/app/savemodel", head{"Authorization": "Bearer " + reader}, 403, "ann may look at apps"},
		{"Slider's stop by who may look", "GET", "/proxy/d1/ws/v1/slider/application/action/stop", head{"Authorization": "Bearer " + reader}, 404, "kept no more"},
		{"PAI's stop by who may look", "PUT", "/api/v1/jobs/d1/executionType", head{"Authorization": "Bearer " + reader}, 403, "ForbiddenUserError"},
		{"PAI's submit", "POST", "/api/v1/jobs", head{"Authorization": "Bearer " + actor}, 501, "muster submit"},
		{"PAI's list", "GET", "/api/v1/jobs", head{"Authorization": "Bearer " + reader}, 200, `"name":"d1"`},
		{"PAI's list by nobody", "GET", "/api/v1/jobs", nil, 401, ""},
		{"PAI's job", "GET", "/api/v1/jobs/d1", head{"Authorization": "Bearer " + reader}, 200, `"jobStatus"`},
		{"PAI's job file", "GET", "/api/v1/jobs/d1/config", head{"Authorization": "Bearer " + reader}, 404, "NoJobConfigError"},
		{"login", "GET", "/login", nil, 200, `name="token"`},
	} {
		w := do(tt.method, tt.path, "{}", tt.heads)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.says) {
			t.Errorf("%s: %d %s, want %d %s", tt.what, w.Code, w.Body, tt.code, tt.says)
		}
	}
	form := head{"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://muster.test"}
	if w := do("POST", "/login", "token=no", form); w.Code != 403 {
		t.Errorf("login with no token: %d", w.Code)
	}
	w := do("POST", "/login", "token="+actor, form)
	if got := w.Header().Get("Set-Cookie"); w.Code != 303 || !strings.Contains(got, "Secure; SameSite=Strict") || !strings.Contains(got, "HttpOnly") {
		t.Errorf("login: %d %s", w.Code, got)
	}
	form["Origin"] = "https://evil.test"
	if w := do("POST", "/login", "token="+actor, form); w.Code != 403 {
		t.Errorf("login by a stranger's page: %d", w.Code)
	}
	look := head{"Authorization": "Bearer " + reader}
	write(actLine, 0o600, 2) // ann's is taken away
	if w := do("GET", "/api/v1/apps", "", look); w.Code != 401 {
		t.Errorf("a token that was taken away: %d", w.Code)
	}
}

// A file of tokens that is broken while the server runs lets nobody in, and the log says why, once; so it does when it
// is mended.
func TestTokenFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	secret, line, err := NewToken("ann", false)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) func() error {
		return func() error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	mode := func(mode os.FileMode) func() error {
		return func() error { return os.Chmod(path, mode) }
	}
	var log strings.Builder
	f := TokenFile{Path: path, log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, tt := range []struct {
		name   string
		change func() error
		in     bool
		says   string
	}{
		{"at the start", write(line), true, ""},
		{"a broken line", write(line + "\nnonsense\n"), false, "tokens:2: want NAME, read or act, and a SHA-256"},
		{"broken elsewhere", write("nonsense\n" + line), false, "tokens:1: want NAME"},
		{"mended", write(line), true, "tokens read again"},
		{"others may write it", mode(0o666), false, "its mode 0666 lets others write it, who could let themselves in; want 0644 or less"},
		{"they may not", mode(0o644), true, "tokens read again"},
		{"it is gone", func() error { return os.Remove(path) }, false, "no such file or directory"},
		{"it is there again", write(line), true, "tokens read again"},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		for range 3 {
			if _, in := f.find(secret); in != tt.in {
				t.Errorf("%s: let in %t, want %t", tt.name, in, tt.in)
			}
		}
		if said := log.String(); !strings.Contains(said, tt.says) || strings.Count(said, "\n") > 1 || tt.says == "" && said != "" {
			t.Errorf("%s: the log has %q, want one line with %q", tt.name, said, tt.says)
		}
	}
}
