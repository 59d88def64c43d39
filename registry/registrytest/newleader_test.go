package registrytest_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// newLeader stands before a registry and answers as a Consul server does in the moment after its election, before it has
// read its log: without consistency a list of sessions is empty, and the first key that is read does not exist.
type newLeader struct {
	url string

	mu    sync.Mutex
	lists int  // of sessions that were asked for
	read  bool // a key was read
}

func elected(t *testing.T, s server) *newLeader {
	t.Helper()
	l := &newLeader{}
	to, err := url.Parse("http://registry")
	must(t, err)
	pass := httputil.NewSingleHostReverseProxy(to)
	dials := &http.Transport{DialContext: dialer(s.URL())}
	pass.Transport, pass.ErrorLog = dials, log.New(io.Discard, "", 0) // a client that goes
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.lags(r) {
			pass.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Consul-Index", "1")
		if strings.HasPrefix(r.URL.Path, "/v1/kv/") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "[]") // the client sees what became of it
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		dials.CloseIdleConnections()
	})
	l.url = "consul://" + strings.TrimPrefix(front.URL, "http://")
	return l
}

// lags tells whether a request is answered without the log.
func (l *newLeader) lags(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sure := r.URL.Query().Has("consistent")
	switch {
	case r.URL.Path == "/v1/session/list":
		l.lists++
		return !sure
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/kv/") && !sure:
		first := !l.read
		l.read = true
		return first
	}
	return false
}

func (l *newLeader) URL() string { return l.url }

// listed waits until sessions were asked for so many times.
func (l *newLeader) listed(t *testing.T, n int) {
	t.Helper()
	for ctx := soon(t); ; time.Sleep(10 * time.Millisecond) {
		l.mu.Lock()
		lists := l.lists
		l.mu.Unlock()
		if lists >= n {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("sessions were asked for %d times, want %d", lists, n)
		}
	}
}
