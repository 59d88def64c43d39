package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// noise is n bytes, others for another seed.
func noise(n int, seed byte) []byte {
	b := make([]byte, n)
	if _, err := rand.NewChaCha8([32]byte{seed}).Read(b); err != nil {
		panic(err)
	}
	return b
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// origin is a server of one file that does what a test wants it to do wrong.
type origin struct {
	t testing.TB

	mu       sync.Mutex
	text     []byte
	etag     string
	modified time.Time // Last-Modified, when there is no etag
	breakAt  int       // bytes of an answer after which the connection breaks; 0: not
	breaks   int       // how many answers break; negative: all
	noRange  bool      // ranges are ignored
	broken   func()    // called at each break
	answer   func(w http.ResponseWriter, r *http.Request) bool
	asked    []string // method and range of each request for the file
}

func (o *origin) serve() *httptest.Server {
	s := httptest.NewServer(o)
	o.t.Cleanup(s.Close)
	return s
}

func (o *origin) requests() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.asked...)
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/app.zip" {
		http.NotFound(w, r)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, strings.TrimSpace(r.Method+" "+r.Header.Get("Range")))
	if o.answer != nil && o.answer(w, r) {
		return
	}
	if o.etag != "" {
		w.Header().Set("ETag", o.etag)
	} else if !o.modified.IsZero() {
		w.Header().Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	}
	body, status := o.text, http.StatusOK
	if from, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !o.noRange && o.same(r.Header.Get("If-Range")) {
		first, err := strconv.Atoi(strings.TrimSuffix(from, "-"))
		if err != nil || first >= len(o.text) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, len(o.text)-1, len(o.text)))
		body, status = o.text[first:], http.StatusPartialContent
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	if o.breakAt > 0 && o.breakAt < len(body) && o.breaks != 0 {
		o.breaks--
		_, _ = w.Write(body[:o.breakAt])
		_ = http.NewResponseController(w).Flush()
		if o.broken != nil {
			o.broken()
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

func (o *origin) same(ifRange string) bool {
	return ifRange == "" || ifRange == o.etag || !o.modified.IsZero() && ifRange == o.modified.UTC().Format(http.TimeFormat)
}

// checkFile compares a fetched file with what it should be.
func checkFile(t testing.TB, f File, want []byte) {
	t.Helper()
	got, err := os.ReadFile(f.Path)
	if err != nil || digestOf(got) != digestOf(want) || f.SHA256 != digestOf(want) || f.Size != int64(len(want)) {
		t.Errorf("got %d bytes at %s, %v, %s, want %d, %s", len(got), f.Path, err, f.SHA256, len(want), digestOf(want))
	}
}

// contentsOf are the names of a folder of the cache.
func contentsOf(t testing.TB, dir, sub string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "fetch", sub))
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
