package ui

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/status"
)

// Two pages of one machine, at two ports, know their browsers by two cookies.
func TestTwoPages(t *testing.T) {
	one, _, oneLinks := serve(t)
	other, _, otherLinks := serve(t)
	c := browser(t)
	get(t, c, <-oneLinks, "")
	get(t, c, <-otherLinks, "")
	for _, base := range []string{one, other} {
		if code, _, _ := get(t, c, base+"/api/v1/apps", ""); code != 200 {
			t.Errorf("%s: %d", base, code)
		}
	}
}

// follow begins to read a stream, and returns what says that it has ended.
func follow(t *testing.T, c *http.Client, r *http.Request) (ended chan struct{}) {
	t.Helper()
	begun := make(chan error, 1)
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		answer, err := c.Do(r)
		if err == nil {
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}
		}
		if begun <- err; err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // until it is cut off
		}
	}()
	if err := <-begun; err != nil {
		t.Fatalf("the stream: %v", err)
	}
	return ended
}

func awaitEnd(t *testing.T, what string, ended chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Errorf("%s goes on", what)
	}
}

// Who logs out ends the session, with the feeds and the pages of apps that it has open; another page cannot do it.
func TestLogout(t *testing.T) {
	base, state, links := serve(t)
	addPages(t, state, board(t))
	c := browser(t)
	get(t, c, <-links, "")
	_, _, head := get(t, c, base+"/apps/d1/proxy/ps-0/ps.board", "")
	open, err := url.Parse(head.Get("Location"))
	if err != nil || open.Host == "" {
		t.Fatalf("%v %v", head, err)
	}
	_, _, head = get(t, &http.Client{CheckRedirect: c.CheckRedirect}, base+open.RequestURI(), open.Host)
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	page := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/x/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = open.Host
		r.Header.Set("Cookie", cookie)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	if code := page(); code != 200 {
		t.Fatalf("the page: %d", code)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := follow(t, &http.Client{Jar: c.Jar}, r)
	logout := func(origin string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/logout", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		kept := c.Jar.Cookies(r.URL)
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		c.Jar.SetCookies(r.URL, kept) // one who has copied it
		return answer.StatusCode
	}
	if code := logout("http://evil.example"); code != 403 {
		t.Errorf("by another page: %d", code)
	}
	if code, _, _ := get(t, c, base+"/api/v1/apps", ""); code != 200 {
		t.Errorf("another page has logged out: %d", code)
	}
	if code := logout(base); code != 204 {
		t.Errorf("got %d", code)
	}
	awaitEnd(t, "the feed", ended)
	if code, _, _ := get(t, c, base+"/api/v1/apps", ""); code != 401 {
		t.Errorf("the session's cookie after it: %d", code)
	}
	if code := page(); code != 403 {
		t.Errorf("the page of an app after it: %d", code)
	}
}

// A token that is taken away, or loses the right to act, ends what was asked with it.
func TestTokenIsTakenAway(t *testing.T) {
	ann, annLine, err := NewToken("ann", false)
	if err != nil {
		t.Fatal(err)
	}
	bob, bobLine, err := NewToken("bob", true)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string, at int64) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write(annLine+"\n"+bobLine+"\n", 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	state := status.Dir(t.TempDir())
	s := &Server{
		Lookup: func(string) (apps.Lookup, error) { return apps.Lookup{State: state, Warn: io.Discard}, nil },
		Access: Access{Tokens: TokenFile{Path: path}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	}()
	begin := func(token string) chan struct{} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/api/v1/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return follow(t, http.DefaultClient, r)
	}
	anns, bobs := begin(ann), begin(bob)
	write(strings.Replace(bobLine, " act ", " read ", 1)+"\n", 2)
	awaitEnd(t, "a feed whose token is gone", anns)
	awaitEnd(t, "a feed whose token may act no more", bobs)
	again := begin(bob)
	select {
	case <-again:
		t.Error("who is let in is cut off")
	case <-time.After(recheck + recheck/2):
	}
}

// A page is this server's own by scheme, host and port.
func TestSameOrigin(t *testing.T) {
	for _, tt := range []struct {
		base, host, origin string
		same               bool
	}{
		{"https://muster.test", "muster.test", "https://muster.test", true},
		{"https://muster.test", "muster.test", "http://muster.test", false},
		{"https://muster.test", "muster.test", "https://muster.test:8443", false},
		{"https://muster.test:8443", "muster.test:8443", "https://muster.test:8443", true},
		{"http://127.0.0.1:80", "localhost:80", "http://localhost:80", true},
		{"http://127.0.0.1:80", "localhost:80", "http://127.0.0.1:80", false},
		{"https://muster.test", "muster.test", "null", false},
		{"https://muster.test", "muster.test", "", false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if got := (&Server{base: tt.base}).sameOrigin(r); got != tt.same {
			t.Errorf("%s at %s: %v", tt.origin, tt.host, got)
		}
	}
}

func TestCookieNames(t *testing.T) {
	for _, tt := range []struct{ base, host, want string }{
		{"http://127.0.0.1:8080", "127.0.0.1:8080", "muster_ui_8080"},
		{"https://muster.test", "muster.test", "__Host-muster_ui"},
		{"https://muster.test:8443", "muster.test:8443", "__Host-muster_ui_8443"},
	} {
		s := &Server{base: tt.base, host: tt.host}
		if got := s.cookie(sessionCookie); got != tt.want || !ownCookie(got) {
			t.Errorf("%s: %s, want %s", tt.base, got, tt.want)
		}
	}
}
