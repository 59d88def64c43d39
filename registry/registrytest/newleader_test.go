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
// read its log: a list of sessions that is not asked for with consistency is empty.
type newLeader struct {
	url string

	mu    sync.Mutex
	lists int // of sessions that were asked for
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
		if r.URL.Path != "/v1/session/list" {
			pass.ServeHTTP(w, r)
			return
		}
		if r.URL.Query().Has("consistent") {
			pass.ServeHTTP(w, r)
		} else {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "[]") // the client sees what became of it
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lists++
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		dials.CloseIdleConnections()
	})
	l.url = "consul://" + strings.TrimPrefix(front.URL, "http://")
	return l
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
