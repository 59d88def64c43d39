package cache

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/schemes"
	"github.com/muster-agent/muster/shim/store/web"
	"github.com/muster-agent/muster/tests/need"
)

const size = 600_000

func TestFetchGoesOnAfterABrokenConnection(t *testing.T) {
	for _, c := range []struct {
		name     string
		etag     string
		modified time.Time
	}{{"etag", `"v1"`, time.Time{}}, {"date", "", time.Now().Add(-time.Hour)}} {
		t.Run(c.name, func(t *testing.T) {
			o := &origin{t: t, text: noise(size, 1), etag: c.etag, modified: c.modified, breakAt: 250_000, breaks: -1}
			r := Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", CacheDir: t.TempDir(), SHA256: strings.ToUpper(digestOf(o.text))}
			f, err := Fetch(t.Context(), r)
			must(t, err)
			checkFile(t, f, o.text)
			if got, want := o.requests(), []string{"GET", "GET bytes=250000-", "GET bytes=500000-"}; !slices.Equal(got, want) {
				t.Errorf("asked: got %q, want %q", got, want)
			}
			must(t, f.Close())
			if left := contentsOf(t, r.CacheDir, "partial"); len(left) != 0 {
				t.Errorf("partial: got %v, want nothing", left)
			}
			f, err = Fetch(t.Context(), r) // by its digest: no network
			must(t, err)
			if !f.Cached || len(o.requests()) != 3 {
				t.Errorf("again: got cached %v, asked %q", f.Cached, o.requests())
			}
			must(t, f.Close())
			r.SHA256 = "" // by the validator: one question
			f, err = Fetch(t.Context(), r)
			must(t, err)
			checkFile(t, f, o.text)
			if asked := o.requests(); !f.Cached || len(asked) != 4 || asked[3] != "HEAD" {
				t.Errorf("unchanged: got cached %v, asked %q", f.Cached, asked)
			}
			must(t, f.Close())
		})
	}
}

func TestFetchLoadsAChangedFile(t *testing.T) {
	o := &origin{t: t, text: noise(size, 1), etag: `"v1"`}
	r := Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", CacheDir: t.TempDir()}
	for seed, etag := range map[byte]string{1: `"v1"`, 2: `"v2"`, 3: ""} {
		o.mu.Lock()
		o.text, o.etag = noise(size, seed), etag
		o.mu.Unlock()
		f, err := Fetch(t.Context(), r)
		must(t, err)
		checkFile(t, f, o.text)
		must(t, f.Close())
	}
}

// The first part is of one version and the rest would be of another: nothing of the first may stay.
func TestFetchDoesNotMixVersions(t *testing.T) {
	o := &origin{t: t, text: noise(size, 1), etag: `"v1"`, breakAt: 250_000, breaks: 1}
	o.broken = func() { o.text, o.etag = noise(size+10, 2), `"v2"` }
	f, err := Fetch(t.Context(), Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", CacheDir: t.TempDir()})
	must(t, err)
	checkFile(t, f, noise(size+10, 2))
	must(t, f.Close())
}

// A server that claims to go on but is at another version, or at another place, is not believed.
func TestFetchDoesNotBelieveAWrongRange(t *testing.T) {
	text := noise(size, 1)
	for name, lie := range map[string]http.Header{
		"start":    {"Content-Range": {"bytes 100-599999/600000"}},
		"end":      {"Content-Range": {"bytes 250000-599998/600000"}},
		"total":    {"Content-Range": {"bytes 250000-599999/1000"}},
		"none":     {},
		"nonsense": {"Content-Range": {"bytes -5-+9/zz"}},
		"version":  {"Content-Range": {"bytes 250000-599999/600000"}, "Etag": {`"v2"`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &origin{t: t, text: text, etag: `"v1"`, breakAt: 250_000, breaks: 1}
			o.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Range") == "" {
					return false
				}
				maps.Copy(w.Header(), lie)
				w.Header().Set("Content-Length", "350000")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(noise(350_000, 9))
				return true
			}
			f, err := Fetch(t.Context(), Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", CacheDir: t.TempDir()})
			must(t, err)
			checkFile(t, f, text)
			must(t, f.Close())
			if got, want := o.requests(), []string{"GET", "GET bytes=250000-", "GET"}; !slices.Equal(got, want) {
				t.Errorf("asked: got %q, want %q", got, want)
			}
		})
	}
}

func TestFetchFromAServerWithoutRanges(t *testing.T) {
	o := &origin{t: t, text: noise(size, 1), etag: `"v1"`, breakAt: 250_000, breaks: 1, noRange: true}
	r := Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", CacheDir: t.TempDir(), Retries: 2}
	f, err := Fetch(t.Context(), r)
	must(t, err)
	checkFile(t, f, o.text)
	must(t, f.Close())

	// one that never comes further than before is given up
	o.mu.Lock()
	o.etag, o.breaks, o.asked = `"v2"`, -1, nil
	o.mu.Unlock()
	r.Retries = 1
	if _, err := Fetch(t.Context(), r); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("got %v, want it given up", err)
	}
	if got := len(o.requests()); got != 4 { // is it still the same?, the first, which came furthest, and two that did not
		t.Errorf("asked %d times (%q), want 4", got, o.requests())
	}
}

func TestFetchErrors(t *testing.T) {
	text := noise(1000, 1)
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
	}
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		r      Request
		is     error
		text   string
	}{
		{"not there", status(http.StatusNotFound), Request{}, fs.ErrNotExist, "check the path"},
		{"gone", status(http.StatusGone), Request{}, fs.ErrNotExist, "410 Gone"},
		{"forbidden", status(http.StatusForbidden), Request{}, fs.ErrPermission, "ask who runs the server"},
		{"login", status(http.StatusUnauthorized), Request{}, fs.ErrPermission, "USER:PASSWORD"},
		{"proxy", status(http.StatusProxyAuthRequired), Request{}, fs.ErrPermission, "HTTPS_PROXY"},
		{"away", status(http.StatusServiceUnavailable), Request{}, store.ErrUnreachable, "503"},
		{"busy", status(http.StatusTooManyRequests), Request{}, store.ErrUnreachable, "429"},
		{"teapot", status(http.StatusTeapot), Request{}, nil, "418"},
		{"part", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Range", "bytes 0-9/1000")
			w.WriteHeader(http.StatusPartialContent)
			return true
		}, Request{}, store.ErrProtocol, "a part of the file"},
		{"coded", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("\x1f\x8b"))
			return true
		}, Request{}, store.ErrProtocol, "gzip"},
		{"short", func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "2000")
			_, _ = w.Write(text)
			return true
		}, Request{}, store.ErrUnreachable, "what has come is kept"},
		{"too large as told", nil, Request{MaxBytes: 999}, store.ErrTooLarge, "it has 1000 bytes, want at most 999"},
		{"too large untold", func(w http.ResponseWriter, _ *http.Request) bool {
			_ = http.NewResponseController(w).Flush() // no length then
			_, _ = w.Write(text)
			return true
		}, Request{MaxBytes: 999}, store.ErrTooLarge, "more than 999 bytes came"},
		{"digest", nil, Request{SHA256: digestOf(nil)}, store.ErrDigest, "want " + digestOf(nil) + ", got " + digestOf(text)},
		{"no digest", nil, Request{SHA256: "abc"}, nil, "want 64 hex digits"},
		{"no sidecar", nil, Request{Sidecars: []Sidecar{{Suffix: ".minisig"}}}, fs.ErrNotExist, "app.zip.minisig"},
		{"loop", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "/app.zip", http.StatusFound)
			return true
		}, Request{}, store.ErrRedirect, "more than 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &origin{t: t, text: text, etag: `"v1"`, answer: c.answer}
			c.r.URL, c.r.CacheDir, c.r.Retries, c.r.Stores = o.serve().URL+"/app.zip", t.TempDir(), -1, schemes.Local()
			f, err := Fetch(t.Context(), c.r)
			if err == nil {
				t.Fatalf("got %s, want an error", f.Path)
			}
			if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "fetch http://") {
				t.Errorf("got %v, want %v with %q", err, c.is, c.text)
			}
			if _, ok := errors.AsType[*store.Error](err); !ok {
				t.Errorf("got %T, want an *Error", err)
			}
			if c.name == "no digest" {
				return
			}
			if left := contentsOf(t, c.r.CacheDir, "sha256"); len(left) != 0 && c.name != "no sidecar" {
				t.Errorf("in the cache: got %v, want nothing", left)
			}
			if left := contentsOf(t, c.r.CacheDir, "partial"); c.is == store.ErrDigest && len(left) != 0 { //nolint:errorlint // a table's own
				t.Errorf("partial: got %v, want nothing", left)
			}
		})
	}
}

func TestFetchOverTLS(t *testing.T) {
	o := &origin{t: t, text: noise(1000, 1)}
	plain := o.serve()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, plain.URL+"/app.zip", http.StatusFound)
			return
		}
		if r.URL.Path == "/there" {
			http.Redirect(w, r, "/app.zip", http.StatusTemporaryRedirect)
			return
		}
		o.ServeHTTP(w, r)
	}))
	secure.Config.ErrorLog = slogNowhere()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	known := store.Set{"https": web.With(*secure.Client())}
	old := secure.Client()
	old.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS12
	for _, c := range []struct {
		name, url string
		stores    store.Set
		is        error
		text      string
	}{
		{"good", secure.URL + "/app.zip", known, nil, ""},
		{"redirect", secure.URL + "/there", known, nil, ""},
		{"unknown authority", secure.URL + "/app.zip", schemes.Local(), store.ErrTLS, "SSL_CERT_FILE"},
		{"other name", strings.Replace(secure.URL, "127.0.0.1", "localhost", 1) + "/app.zip", known, store.ErrTLS, "check the host's name"},
		{"no tls there", strings.Replace(plain.URL, "http:", "https:", 1) + "/app.zip", known, store.ErrTLS, "does not speak https"},
		{"down to http", secure.URL + "/down", known, store.ErrRedirect, "from https to http"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Fetch(t.Context(), Request{URL: c.url, CacheDir: t.TempDir(), Retries: -1, Stores: c.stores})
			if c.is == nil {
				must(t, err)
				checkFile(t, f, o.text)
				must(t, f.Close())
				return
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.is, c.text)
			}
		})
	}
}

func TestFetchBringsSidecars(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.zip"), []byte("archive"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a.zip.minisig"), []byte("signature"), 0o600))
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	for _, url := range []string{server.URL + "/a.zip", server.URL + "/a.zip?x=1#y", filepath.Join(dir, "a.zip"), "file://" + dir + "/a.zip", "file:" + dir + "/a.zip"} {
		f, err := Fetch(t.Context(), Request{Stores: schemes.Local(), URL: url, CacheDir: t.TempDir(), Sidecars: []Sidecar{{".minisig", true}, {".sha256", true}}})
		must(t, err)
		checkFile(t, f, []byte("archive"))
		checkFile(t, f.Sidecars[".minisig"], []byte("signature"))
		if len(f.Sidecars) != 1 {
			t.Errorf("%s: got %v, want .minisig alone", url, f.Sidecars)
		}
		must(t, f.Close())
	}
}

// What an earlier process left is gone on with; where it is wrong, the digest tells, and all is loaded once more.
func TestFetchStartsAgainWhereThePartIsWrong(t *testing.T) {
	o := &origin{t: t, text: noise(size, 1), etag: `"v1"`}
	r := Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", Retries: -1}
	for _, c := range []struct {
		name string
		want string
		part []byte
		note string
		asks []string
	}{
		{"flipped", digestOf(o.text), noise(1000, 7), `{"validator":"\"v1\"","size":600000,"url":"URL"}`, []string{"GET bytes=1000-", "GET"}},
		{"too long", digestOf(o.text), noise(size+5, 7), `{"validator":"\"v1\"","size":600000,"url":"URL"}`, []string{"GET bytes=600005-", "GET"}},
		{"whole", digestOf(o.text), o.text, `{"validator":"\"v1\"","size":600000,"url":"URL"}`, nil},
		{"whole, no digest", "", o.text, `{"validator":"\"v1\"","size":600000,"url":"URL","boot":"BOOT"}`, []string{"HEAD"}},
		{"whole, older", "", noise(size, 7), `{"validator":"\"v0\"","size":600000,"url":"URL","boot":"BOOT"}`, []string{"HEAD", "GET"}},
		{"other boot", "", o.text[:1000], `{"validator":"\"v1\"","size":600000,"url":"URL","boot":"other"}`, []string{"GET"}},
		{"no note", "", o.text[:1000], ``, []string{"GET"}},
		{"torn note", "", o.text[:1000], `{"vali`, []string{"GET"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r
			r.CacheDir, r.SHA256 = t.TempDir(), c.want
			cache, err := openCache(r.CacheDir)
			must(t, err)
			part := filepath.Join(cache.root, "partial", key(r.URL))
			must(t, os.WriteFile(part, c.part, 0o600))
			text := strings.NewReplacer("URL", r.URL, "BOOT", boot()).Replace(c.note)
			must(t, os.WriteFile(part+".json", []byte(text), 0o600))
			o.mu.Lock()
			o.asked = nil
			o.mu.Unlock()
			f, err := Fetch(t.Context(), r)
			must(t, err)
			checkFile(t, f, o.text)
			must(t, f.Close())
			if got := o.requests(); !slices.Equal(got, c.asks) {
				t.Errorf("asked: got %q, want %q", got, c.asks)
			}
		})
	}
}

// A file that has changed on the disk is not given out.
func TestFetchReadsTheCacheAgain(t *testing.T) {
	o := &origin{t: t, text: noise(1000, 1), etag: `"v1"`}
	r := Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", CacheDir: t.TempDir()}
	f, err := Fetch(t.Context(), r)
	must(t, err)
	must(t, f.Close())
	if info, err := os.Stat(f.Path); err != nil || info.Mode() != 0o400 {
		t.Errorf("got %v, %v, want it read-only", info.Mode(), err)
	}
	must(t, os.Remove(f.Path))
	must(t, os.WriteFile(f.Path, []byte("another"), 0o600))
	for _, want := range []string{"", digestOf(o.text)} {
		r.SHA256 = want
		f, err = Fetch(t.Context(), r)
		must(t, err)
		checkFile(t, f, o.text)
		must(t, f.Close())
	}
	if got, want := o.requests(), []string{"GET", "HEAD", "GET"}; !slices.Equal(got, want) {
		t.Errorf("asked: got %q, want %q", got, want)
	}
}

func TestFetchAllIsBounded(t *testing.T) {
	var now, most, arrived atomic.Int32
	full := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m; m = most.Load() {
			most.CompareAndSwap(m, n)
		}
		if arrived.Add(1) == 3 {
			close(full)
		}
		select { // the first ones stay until as many are here as may be
		case <-full:
		case <-time.After(30 * time.Second):
		}
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	t.Cleanup(server.Close)
	var requests []Request
	var shown bytes.Buffer
	cache := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		requests = append(requests, Request{Stores: schemes.Local(), URL: server.URL + "/" + name, CacheDir: cache, Progress: &shown})
	}
	files, err := FetchAll(t.Context(), requests, 3)
	must(t, err)
	for i, f := range files {
		checkFile(t, f, []byte("/"+requests[i].URL[len(server.URL)+1:]))
		must(t, f.Close())
	}
	if most.Load() != 3 {
		t.Errorf("at a time: got %d, want 3", most.Load())
	}
	if !strings.Contains(shown.String(), "fetch 8 files: 0.0 of 0.0 MiB, 100 %") {
		t.Errorf("shown: got %q", shown.String())
	}
}

func TestFetchAllGivesUpTogether(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			http.NotFound(w, r)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // until it is called off
	}))
	t.Cleanup(server.Close)
	cache := t.TempDir()
	_, err := FetchAll(t.Context(), []Request{{Stores: schemes.Local(), URL: server.URL + "/slow", CacheDir: cache}, {Stores: schemes.Local(), URL: server.URL + "/bad", CacheDir: cache}}, 2)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/bad") {
		t.Errorf("got %v, want the first error", err)
	}
}

func TestFetchIsCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := &origin{t: t, text: noise(size, 1), etag: `"v1"`, breakAt: 250_000, breaks: -1, broken: cancel}
	if _, err := Fetch(ctx, Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", CacheDir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it called off", err)
	}
}

// A full disk is named, what came stays, and the next try goes on from there.
func TestFetchOnAFullDisk(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=300k,mode=0700"))
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	o := &origin{t: t, text: noise(size, 1), etag: `"v1"`}
	r := Request{Stores: schemes.Local(), URL: o.serve().URL + "/app.zip", CacheDir: dir}
	_, err := Fetch(t.Context(), r)
	if !errors.Is(err, store.ErrNoSpace) || !strings.Contains(err.Error(), "free some on the file system of "+dir) {
		t.Fatalf("got %v, want no space with a remedy", err)
	}
	if left := contentsOf(t, dir, "sha256"); len(left) != 0 {
		t.Errorf("in the cache: got %v, want nothing", left)
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=3m,mode=0700"))
	f, err := Fetch(t.Context(), r)
	must(t, err)
	checkFile(t, f, o.text)
	must(t, f.Close())
	if asked := o.requests(); len(asked) != 2 || !strings.HasPrefix(asked[1], "GET bytes=") {
		t.Errorf("asked: got %q, want the rest alone the second time", asked)
	}
}
