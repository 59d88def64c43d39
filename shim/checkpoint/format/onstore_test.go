package format

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

// A store is looked at as a folder is, by its own listing, and little of a file is read.
func TestLookOnAStore(t *testing.T) {
	for _, dir := range []string{"tensorflow/v2", "tensorflow/named", "torch/zip", "torch/old", "torch/sharded", "mxnet", "lightgbm"} {
		at := t.TempDir()
		must(t, os.CopyFS(at, os.DirFS(filepath.Join("testdata", dir))))
		store, top, err := file.Open(t.Context(), at)
		must(t, err)
		framework, _, _ := strings.Cut(dir, "/")
		rule := Rule{Framework: strings.Replace(framework, "torch", "pytorch", 1)}
		want, err := rule.Look(os.DirFS(at))
		must(t, err)
		got, err := rule.Look(OnStore(t.Context(), store, top))
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" || len(got.Whole) == 0 {
			t.Errorf("%s (-folder +store):\n%s", dir, diff)
		}
		if nothing, err := rule.Look(OnStore(t.Context(), store, top+"/none")); err != nil || len(nothing.Whole)+len(nothing.Torn) > 0 {
			t.Errorf("a folder that is not there: %+v, %v", nothing, err)
		}
	}
	big := filepath.Join(t.TempDir(), "c-1.npz")
	must(t, os.WriteFile(big, append([]byte("PK\x03\x04"), make([]byte, 5<<20)...), 0o600))
	counted := &counter{}
	store, top, err := file.Open(t.Context(), filepath.Dir(big))
	must(t, err)
	counted.Store = store
	if found, err := (Rule{Pattern: "c-*.npz"}).Look(OnStore(t.Context(), counted, top)); err != nil || len(found.Torn) != 1 {
		t.Errorf("got %+v, %v, want it torn", found, err)
	}
	if counted.bytes > 2*piece+1<<20 {
		t.Errorf("%d bytes were read to see that a file of 5 MiB has no end", counted.bytes)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// counter counts the bytes that are read of a store.
type counter struct {
	store.Store
	bytes int
}

func (c *counter) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	content, err := c.Store.Open(ctx, path, at)
	if err == nil {
		content.ReadCloser = struct {
			io.Reader
			io.Closer
		}{counterOf{content.ReadCloser, c}, content.ReadCloser}
	}
	return content, err
}

type counterOf struct {
	io.Reader
	c *counter
}

func (c counterOf) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.c.bytes += n
	return n, err
}
