package schemes

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/store"
)

func TestOpenChoosesByScheme(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
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
		_, path, err := Local().Open(t.Context(), c.url)
		if path != c.path || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %q, %v, want %q, %q", c.url, path, err, c.path, c.fails)
		}
	}
	if _, _, err := Local().Open(t.Context(), "hdfs://nn/a"); !errors.Is(err, store.ErrScheme) {
		t.Errorf("got %v, want an ErrScheme", err)
	}
	mine := store.Set{"hdfs": func(context.Context, string) (store.Store, string, error) { return nil, "/mine", nil }}
	if _, path, err := mine.Open(t.Context(), "hdfs://nn/a"); err != nil || path != "/mine" {
		t.Errorf("got %q, %v, want the store that was named", path, err)
	}
}
