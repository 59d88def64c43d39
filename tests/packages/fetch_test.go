package packages

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// site serves one file. The first answer stops in the middle and stays open until it is let go.
type site struct {
	text []byte
	stop int

	mu    sync.Mutex
	asked []string
	let   chan struct{}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/app.zip" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.Header.Get("Range")))
	first := len(s.asked) == 1
	s.mu.Unlock()
	w.Header().Set("ETag", `"v1"`)
	if !first {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(s.text)))
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(s.text)))
	_, _ = w.Write(s.text[:s.stop])
	_ = http.NewResponseController(w).Flush()
	<-s.let
	_, _ = w.Write(s.text[s.stop:])
}

func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// half starts a fetch and returns when the first half is on the disk.
func half(t *testing.T, s *site, url string, env []string, cache string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), muster, "package", "fetch", url)
	c.Env = env
	must(t, c.Start())
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	watchdog := time.After(30 * time.Second)
	for {
		select {
		case <-look.C:
			parts, err := filepath.Glob(filepath.Join(cache, "muster", "fetch", "partial", "*"))
			must(t, err)
			for _, part := range parts {
				if info, err := os.Stat(part); err == nil && info.Size() == int64(s.stop) {
					return c
				}
			}
		case <-watchdog:
			t.Fatalf("the first %d bytes are not on disk; asked %q", s.stop, s.requests())
		}
	}
}

func newSite(t *testing.T) (*site, string, []string, string) {
	t.Helper()
	s := &site{text: []byte(strings.Repeat("0123456789", 80_000)), stop: 400_000, let: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	env := home(t)
	cache := filepath.Join(t.TempDir(), "cache")
	return s, server.URL + "/app.zip", append(env, "XDG_CACHE_HOME="+cache), cache
}

// A fetch that is killed loses nothing: the next goes on where it was.
func TestAKilledFetchIsGoneOnWith(t *testing.T) {
	s, url, env, cache := newSite(t)
	c := half(t, s, url, env, cache)
	must(t, c.Process.Kill())
	_ = c.Wait() // killed
	close(s.let)
	stdout, stderr, code := run(t, env, t.TempDir(), "package", "fetch", url)
	if want := fmt.Sprintf("%x  ", sha256.Sum256(s.text)); code != 0 || !strings.HasPrefix(stdout, want) {
		t.Errorf("got %d, %q, %q, want %s", code, stdout, stderr, want)
	}
	if got, want := s.requests(), []string{"GET", "GET bytes=400000-"}; len(got) < 2 || !slices.Equal(got[:2], want) {
		t.Errorf("asked: got %q, want %q", got, want)
	}
}

// Of two at once one loads, and the other waits and finds it.
func TestTwoFetchesLoadOnce(t *testing.T) {
	s, url, env, cache := newSite(t)
	first := half(t, s, url, env, cache)
	second := exec.CommandContext(t.Context(), muster, "package", "fetch", url, "--json")
	second.Env = env
	var out strings.Builder
	second.Stdout = &out
	must(t, second.Start())
	close(s.let)
	must(t, first.Wait())
	must(t, second.Wait())
	if !strings.Contains(out.String(), `"cached": true`) && !strings.Contains(out.String(), `"cached":true`) {
		t.Errorf("got %s, want it from the cache", out.String())
	}
	loaded := 0
	for _, asked := range s.requests() {
		if strings.HasPrefix(asked, "GET") {
			loaded++
		}
	}
	if loaded != 1 {
		t.Errorf("asked: got %q, want it loaded once", s.requests())
	}
}
