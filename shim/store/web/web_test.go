package web

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

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
	s, path, err := Open(ctx, server.URL+"/a")
	must(t, err)
	info, err := s.Stat(ctx, path) // by GET, where HEAD is not known
	must(t, err)
	if info.Size != 10 || info.Validator != "Thu, 01 Jan 2026 00:00:00 GMT" || info.Path != "/a" {
		t.Errorf("got %+v, want the date for a validator, for the ETag is weak", info)
	}
	f, err := s.Open(ctx, path, store.Position{Offset: 4})
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
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, store.ErrRedirect) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s to %s: got %v, want %q", c.from, c.to, err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
