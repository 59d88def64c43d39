package fetch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOpenChoosesByScheme(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	must(t, err)
	for _, c := range []struct{ url, path, fails string }{
		{"/a/b", "/a/b", ""},
		{"a b%20?c", here + "/a b%20?c", ""},
		{"./a:b", here + "/a:b", ""},
		{"file:a", here + "/a", ""},
		{"FILE:///a", "/a", ""},
		{"file://localhost/a", "/a", ""},
		{"//a", "/a", ""},
		{"file://host/a", "", `got host "host", want none`},
		{"file:", "", "got no path"},
		{"http://h/a/b?q=1#f", "/a/b?q=1", ""},
		{"HTTPS://h", "/", ""},
		{"http:a", "", "got no host"},
		{"http://[::1", "", "cannot be read"},
		{"hdfs://nn/a", "", "no store for this scheme: got hdfs:, want one of file, http, https"},
		{"a:b", "", "./NAME"},
	} {
		_, path, err := Open(t.Context(), c.url, Options{})
		if path != c.path || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %q, %v, want %q, %q", c.url, path, err, c.path, c.fails)
		}
	}
	if _, _, err := Open(t.Context(), "hdfs://nn/a", Options{}); !errors.Is(err, ErrScheme) {
		t.Errorf("got %v, want an ErrScheme", err)
	}
	mine := Options{Schemes: map[string]Opener{"hdfs": func(context.Context, string, Options) (Store, string, error) { return nil, "/mine", nil }}}
	if _, path, err := Open(t.Context(), "hdfs://nn/a", mine); err != nil || path != "/mine" {
		t.Errorf("got %q, %v, want the store that was named", path, err)
	}
}

func TestFileStore(t *testing.T) {
	ctx := t.Context()
	s, dir, err := Open(ctx, t.TempDir(), Options{})
	must(t, err)
	name := filepath.Join(dir, "deep", "er", "a")
	w, err := s.Create(ctx, name)
	must(t, err)
	_, err = w.Write([]byte("0123456789"))
	must(t, errors.Join(err, w.Close()))
	if _, err := s.Create(ctx, name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create again: got %v, want ErrExist", err)
	}
	was, err := s.Stat(ctx, name)
	must(t, err)
	if was.Path != name || was.Size != 10 || was.Dir || was.Validator == "" || time.Since(was.ModTime) > time.Hour {
		t.Errorf("got %+v", was)
	}
	for _, c := range []struct {
		at     Position
		offset int64
		text   string
	}{{Position{}, 0, "0123456789"}, {Position{4, ""}, 4, "456789"}, {Position{4, was.Validator}, 4, "456789"}, {Position{4, "other"}, 0, "0123456789"}, {Position{10, ""}, 10, ""}, {Position{11, ""}, 0, "0123456789"}} {
		f, err := s.Open(ctx, name, c.at)
		must(t, err)
		text, err := io.ReadAll(f)
		if must(t, errors.Join(err, f.Close())); f.Offset != c.offset || string(text) != c.text || f.Info != was {
			t.Errorf("at %v: got %d, %q, %+v, want %d, %q", c.at, f.Offset, text, f.Info, c.offset, c.text)
		}
	}
	other := filepath.Join(dir, "b")
	must(t, os.WriteFile(other, []byte("old"), 0o600))
	must(t, s.Rename(ctx, name, other))
	all, err := s.List(ctx, dir)
	must(t, err)
	if len(all) != 2 || all[0].Path != other || all[0].Size != 10 || all[1].Path != filepath.Join(dir, "deep") || !all[1].Dir {
		t.Errorf("got %+v", all)
	}
	must(t, s.Remove(ctx, filepath.Join(dir, "deep")))
	for what, err := range map[string]error{
		"stat":   second(s.Stat(ctx, name)),
		"list":   second(s.List(ctx, name)),
		"open":   second(s.Open(ctx, name, Position{})),
		"remove": s.Remove(ctx, name),
		"rename": s.Rename(ctx, name, other),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), what+" "+name) || !strings.HasSuffix(err.Error(), "; check the path") {
			t.Errorf("%s: got %v, want ErrNotExist with a remedy", what, err)
		}
	}
	if _, err := s.Open(ctx, dir, Position{}); err == nil || !strings.Contains(err.Error(), "got a folder, want a file") {
		t.Errorf("got %v, want a folder refused", err)
	}
	if _, err := s.Open(ctx, "/dev/null", Position{}); err == nil || !strings.Contains(err.Error(), "want a file") {
		t.Errorf("got %v, want a device refused", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestHTTPStoreIsForReading(t *testing.T) {
	ctx := t.Context()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("ETag", `W/"weak"`)
		http.ServeContent(w, r, "", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), strings.NewReader("0123456789"))
	}))
	t.Cleanup(server.Close)
	s, path, err := Open(ctx, server.URL+"/a", Options{})
	must(t, err)
	info, err := s.Stat(ctx, path) // by GET, where HEAD is not known
	must(t, err)
	if info.Size != 10 || info.Validator != "Thu, 01 Jan 2026 00:00:00 GMT" || info.Path != "/a" {
		t.Errorf("got %+v, want the date for a validator, for the ETag is weak", info)
	}
	f, err := s.Open(ctx, path, Position{Offset: 4})
	must(t, err)
	text, err := io.ReadAll(f)
	if must(t, errors.Join(err, f.Close())); string(text) != "456789" || f.Offset != 4 || f.Info.Size != 10 {
		t.Errorf("got %q at %d of %d", text, f.Offset, f.Info.Size)
	}
	for what, err := range map[string]error{
		"list":   second(s.List(ctx, path)),
		"create": second(s.Create(ctx, path)),
		"remove": s.Remove(ctx, path),
		"rename": s.Rename(ctx, path, "/b"),
	} {
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "; ") {
			t.Errorf("%s: got %v, want ErrUnsupported with what would do", what, err)
		}
	}
}

func TestPut(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "store", "to")
	must(t, os.WriteFile(from, []byte("new"), 0o600))
	good, bad := digestOf([]byte("new")), digestOf([]byte("other"))
	left := func() []string {
		entries, err := os.ReadDir(filepath.Join(dir, "store"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		must(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if _, err := Put(t.Context(), to, from, bad, Options{}); !errors.Is(err, ErrDigest) || !strings.Contains(err.Error(), good) || !strings.Contains(err.Error(), bad) {
		t.Errorf("got %v, want both digests", err)
	}
	if names := left(); len(names) != 0 {
		t.Errorf("left: %v, want nothing", names)
	}
	for range 2 { // the second replaces
		if got, err := Put(t.Context(), "file:"+to, from, good, Options{}); err != nil || got != good {
			t.Errorf("got %s, %v, want %s", got, err, good)
		}
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "new" || len(left()) != 1 {
		t.Errorf("got %q, %v, beside %v", text, err, left())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		url  string
		file string
		want string
		is   error
		text string
	}{
		{"http", t.Context(), "https://u:secret@h/a?t=secret", from, "", errors.ErrUnsupported, "by file:, or by the server's own tool"},
		{"scheme", t.Context(), "hdfs://h/a", from, "", ErrScheme, "file, http, https"},
		{"called off", ctx, to, from, "", context.Canceled, ""},
		{"no file", t.Context(), to, from + "x", "", fs.ErrNotExist, "check the path"},
		{"a folder", t.Context(), to, dir, "", nil, "want a file"},
		{"no digest", t.Context(), to, from, "ABC", nil, "64 hex digits"},
	} {
		_, err := Put(c.ctx, c.url, c.file, c.want, Options{})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.is, c.text)
		}
	}
	if names := left(); len(names) != 1 {
		t.Errorf("left: %v, want the file alone", names)
	}
}

func TestClean(t *testing.T) {
	dir, from := t.TempDir(), t.TempDir()
	begun := time.Now()
	var files []File
	for i, name := range []string{"a", "b", "c", "d"} {
		path := filepath.Join(from, name)
		must(t, os.WriteFile(path, noise(1000, byte(i)), 0o600))
		f, err := Fetch(t.Context(), Request{URL: path, CacheDir: dir})
		must(t, err)
		files = append(files, f)
		used := begun.Add(time.Duration(i-10) * time.Hour)
		must(t, os.Chtimes(filepath.Join(dir, "fetch", "locks", "sha256-"+f.SHA256), used, used))
	}
	partial := filepath.Join(dir, "fetch", "partial")
	old := begun.Add(-24 * time.Hour)
	for _, name := range []string{key("x"), key("x") + ".json", key("busy"), ".new-1"} {
		must(t, os.WriteFile(filepath.Join(partial, name), []byte("part"), 0o600))
		must(t, os.Chtimes(filepath.Join(partial, name), old, old))
	}
	must(t, os.WriteFile(filepath.Join(partial, key("new")), []byte("part"), 0o600))
	c, err := openCache(dir)
	must(t, err)
	busy, err := c.tryLock("url-"+key("busy"), 2) // LOCK_EX
	must(t, err)

	gone := func(keep Keep) string {
		t.Helper()
		removed, err := Clean(t.Context(), dir, keep)
		must(t, err)
		var names strings.Builder
		for _, r := range removed {
			for i, f := range files {
				if r.SHA256 == f.SHA256 && r.Bytes == 1000 {
					names.WriteByte("abcd"[i])
				}
			}
		}
		return names.String()
	}
	if got := gone(Keep{Since: begun.Add(time.Hour)}); got != "" {
		t.Errorf("all held: got %q removed, want none", got)
	}
	if got := contentsOf(t, dir, "partial"); len(got) != 1 || got[0] != key("busy") {
		t.Errorf("partial: got %v, want what is held", got)
	}
	for _, f := range files {
		must(t, f.Close())
	}
	must(t, busy.Release())
	if got := gone(Keep{}); got != "" {
		t.Errorf("nothing asked: got %q removed, want none", got)
	}
	if got := gone(Keep{Since: begun.Add(-9*time.Hour - time.Minute)}); got != "a" {
		t.Errorf("by time: got %q removed, want a", got)
	}
	if got := gone(Keep{Bytes: 2000}); got != "b" {
		t.Errorf("by bytes: got %q removed, want b", got)
	}
	if got := contentsOf(t, dir, "index"); len(got) != 2 {
		t.Errorf("index: got %v, want those of c and d", got)
	}
	f, err := Fetch(t.Context(), Request{URL: filepath.Join(from, "c"), CacheDir: dir})
	must(t, err)
	if !f.Cached {
		t.Error("c: got it loaded, want it from the cache")
	}
	must(t, f.Close())
	if got := gone(Keep{Bytes: 1000}); got != "d" { // c was used after it
		t.Errorf("by bytes: got %q removed, want d", got)
	}
	if removed, err := Clean(t.Context(), t.TempDir(), Keep{Bytes: 1}); err != nil || removed != nil {
		t.Errorf("no cache: got %v, %v", removed, err)
	}
}

func TestCacheOfAnotherIsRefused(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	must(t, os.Mkdir(open, 0o700))
	must(t, os.Chmod(open, 0o777))
	_, err := Fetch(t.Context(), Request{URL: "/etc/hostname", CacheDir: filepath.Join(open, "cache")})
	if err == nil || !strings.Contains(err.Error(), "others may not write there") || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("got %v, want it refused with a remedy", err)
	}
}

func TestPrintable(t *testing.T) {
	for raw, want := range map[string]string{
		"https://u:p@h/a?sig=s": "https://u:xxxxx@h/a?…", "https://h/a": "https://h/a", "/a?b": "/a?b", "file:/a?b": "file:/a?b",
		"http://u:p@h/a%zz": "http://…@h/a%zz",
	} {
		if got := Printable(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func TestRedirects(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"https://a/x", "https://b/x", ""},
		{"http://a/x", "https://b/x", ""},
		{"https://a/x", "http://a/x", "from https to http"},
		{"https://a/x", "https://127.0.0.1/x", "which is this machine"},
		{"https://a/x", "https://[::1]:80/x", "which is this machine"},
		{"http://a/x", "http://0.0.0.0/x", "which is this machine"},
		{"http://10.0.0.1/x", "http://localhost:1/x", "which is this machine"},
		{"http://a/x", "http://a.localhost/x", "which is this machine"},
		{"http://a/x", "file:///etc/passwd", "got one to scheme file"},
		{"http://a/x", "http://LocalHost.:8500/x", "which is this machine"},
		{"http://localhost:1/x", "http://127.0.0.1:2/x", ""},
		{"http://127.0.0.1/x", "http://a/x", ""},
	} {
		from, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.from, nil)
		must(t, err)
		to, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.to, nil)
		must(t, err)
		err = checkRedirect(to, []*http.Request{from})
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrRedirect) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s to %s: got %v, want %q", c.from, c.to, err, c.want)
		}
	}
}
