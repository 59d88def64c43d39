package cache

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/web"
)

// helperURL in the environment makes the test binary a process that fetches it.
const helperURL, helperCache = "MUSTER_FETCH_TEST_URL", "MUSTER_FETCH_TEST_CACHE"

func TestMain(m *testing.M) {
	if url := os.Getenv(helperURL); url != "" {
		os.Exit(helper(url, os.Getenv(helperCache)))
	}
	os.Exit(m.Run())
}

func helper(url, cache string) int {
	stores := store.Set{"http": func(ctx context.Context, url string) (store.Store, string, error) {
		s, path, err := web.Open(ctx, url)
		return told{s}, path, err
	}}
	f, err := Fetch(context.Background(), Request{URL: url, CacheDir: cache, Stores: stores})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("done", f.SHA256, f.Cached)
	return 0
}

// told says how much has come, and is on disk, whenever it reads on.
type told struct{ store.Store }

func (s told) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	c, err := s.Store.Open(ctx, path, at)
	if err == nil {
		c.ReadCloser = &toldReader{ReadCloser: c.ReadCloser, n: c.Offset}
	}
	return c, err
}

type toldReader struct {
	io.ReadCloser
	n int64
}

func (r *toldReader) Read(p []byte) (int, error) {
	fmt.Println("have", r.n)
	n, err := r.ReadCloser.Read(p)
	r.n += int64(n)
	return n, err
}

func slogNowhere() *log.Logger { return log.New(io.Discard, "", 0) }

// process starts the helper; its lines come from the reader.
func process(t *testing.T, url, cache string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), helperURL+"="+url, helperCache+"="+cache)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	return c, bufio.NewScanner(out)
}

// last reads the helper to its end and gives its last line.
func last(t *testing.T, c *exec.Cmd, lines *bufio.Scanner) string {
	t.Helper()
	text := ""
	for lines.Scan() {
		text = lines.Text()
	}
	if err := c.Wait(); err != nil {
		t.Errorf("helper: %v", err)
	}
	return text
}

func TestTheNextProcessGoesOn(t *testing.T) {
	o := &origin{t: t, text: noise(size, 1), etag: `"v1"`, breakAt: 400_000, breaks: 1}
	hang := make(chan struct{})
	o.broken = func() { <-hang } // the connection stays and nothing comes
	url, cache := o.serve().URL+"/app.zip", t.TempDir()
	c, lines := process(t, url, cache)
	for lines.Scan() {
		if lines.Text() == "have 400000" {
			break
		}
	}
	must(t, c.Process.Kill())
	_ = c.Wait() // killed
	close(hang)
	c, lines = process(t, url, cache)
	if got, want := last(t, c, lines), "done "+digestOf(o.text)+" false"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := strings.Join(o.requests(), ", "), "GET, GET bytes=400000-"; got != want {
		t.Errorf("asked: got %q, want %q", got, want)
	}
}

func TestTwoProcessesLoadOnce(t *testing.T) {
	o := &origin{t: t, text: noise(size, 1), etag: `"v1"`}
	began, go1 := make(chan struct{}, 2), make(chan struct{})
	o.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			began <- struct{}{}
			<-go1
		}
		return false
	}
	url, cache := o.serve().URL+"/app.zip", t.TempDir()
	first, firstLines := process(t, url, cache)
	select {
	case <-began: // it has the lock now
	case <-time.After(30 * time.Second):
		close(go1)
		t.Fatalf("the first process asks for nothing: %s", last(t, first, firstLines))
	}
	second, secondLines := process(t, url, cache)
	close(go1)
	got := []string{last(t, first, firstLines), last(t, second, secondLines)}
	if want := "done " + digestOf(o.text); got[0] != want+" false" || got[1] != want+" true" {
		t.Errorf("got %q, want the first to load it and the second to find it", got)
	}
	if got := strings.Join(o.requests(), ", "); got != "GET, HEAD" {
		t.Errorf("asked: got %q, want it loaded once", got)
	}
}
