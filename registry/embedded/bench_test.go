package embedded

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// BenchmarkWake is the release of a gang: 1,000 readers that wait on one key, over connections of
// their own, from the write to the last answer.
func BenchmarkWake(b *testing.B) {
	const readers = 1000
	b.Run("handler", func(b *testing.B) {
		s := New(Options{})
		defer s.Close()
		h := s.Handler()
		benchWake(b, s, readers, func(path string) error {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			return nil
		})
	})
	b.Run("unix", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "s")
		l, err := ListenUnix(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		s := New(Options{})
		web := &http.Server{Handler: s.Handler()}
		go func() { _ = web.Serve(l) }() // ends by the Close below
		transport := &http.Transport{MaxIdleConnsPerHost: readers, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}
		defer func() { transport.CloseIdleConnections(); s.Close(); web.Close() }()
		c := http.Client{Transport: transport}
		benchWake(b, s, readers, func(path string) error {
			resp, err := c.Get("http://registry" + path)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		})
	})
}

func benchWake(b *testing.B, s *Server, readers int, get func(string) error) {
	ask(s, "PUT", "/v1/kv/directive", "0")
	for n := 1; b.Loop(); n++ {
		b.StopTimer()
		_, index := s.store.get("directive")
		path := fmt.Sprintf("/v1/kv/directive?wait=60s&index=%d", index)
		var all sync.WaitGroup
		for range readers {
			all.Go(func() {
				if err := get(path); err != nil {
					b.Error(err)
				}
			})
		}
		for s.waiting() < readers {
			runtime.Gosched()
		}
		b.StartTimer()
		ask(s, "PUT", "/v1/kv/directive", fmt.Sprint(n))
		all.Wait()
	}
}

// BenchmarkAcknowledge is the write that each of 1,000 members makes before a start (T4), in a gang
// that is rebuilt each minute.
func BenchmarkAcknowledge(b *testing.B) {
	const members = 1000
	s := newKeyStore("node")
	ids := make([]string, members)
	for i := range ids {
		ids[i] = fmt.Sprintf("session-%d", i)
		newSession(b, s, start, sessionInfo{ID: ids[i], TTL: "10s"})
		apply(b, s, start, operation{Verb: verbLock, Key: fmt.Sprintf("live/worker/%d", i), Session: ids[i]})
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		i, gen := n%members, n/members
		_, refused, _ := s.txn(at(time.Duration(gen)*time.Minute), []operation{
			{Verb: verbCheckSession, Key: fmt.Sprintf("live/worker/%d", i), Session: ids[i]},
			{Verb: verbSet, Key: fmt.Sprintf("members/worker/%d", i), Value: []byte(fmt.Sprint(gen))},
			{Verb: verbLock, Key: fmt.Sprintf("ready/%d/worker/%d", gen, i), Session: ids[i]},
			{Verb: verbDelete, Key: fmt.Sprintf("ready/%d/worker/%d", gen-1, i)},
		})
		if refused != nil {
			b.Fatal(refused)
		}
	}
}
