package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/muster-agent/muster/shim/store"
)

// tested is one that can be written, with folders of its own.
type tested interface {
	store.Store
	MkdirAll(ctx context.Context, path string) error
	Prune(ctx context.Context, path string) error
}

// Noise is n bytes, the same for the same seed, without a pattern that a fault could hide in.
func Noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
	return b
}

// Put writes a file.
func Put(t testing.TB, s store.Store, path string, content []byte) {
	t.Helper()
	w, err := s.Create(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(content)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

// Get reads a file from an offset on.
func Get(t testing.TB, s store.Store, path string, offset int64) []byte {
	t.Helper()
	c, err := s.Open(t.Context(), path, store.Position{Offset: offset})
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(c)
	if err = errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	if c.Offset != offset {
		t.Fatalf("%s: begins at %d, want %d", path, c.Offset, offset)
	}
	return content
}

// Run is the suite. dir is an empty folder of the store's; blocks are sizes in bytes at which a file of the store
// changes its form, if any.
func Run(t *testing.T, s tested, dir string, blocks ...int) {
	t.Run("files of all sizes", func(t *testing.T) { sizes(t, s, path.Join(dir, "sizes"), blocks) })
	t.Run("what is there already", func(t *testing.T) { there(t, s, path.Join(dir, "there")) })
	t.Run("folders", func(t *testing.T) { folders(t, s, path.Join(dir, "folders")) })
	t.Run("renaming", func(t *testing.T) { renaming(t, s, path.Join(dir, "renaming")) })
	t.Run("removing", func(t *testing.T) { removing(t, s, path.Join(dir, "removing")) })
	t.Run("versions", func(t *testing.T) { versions(t, s, path.Join(dir, "versions")) })
	t.Run("what is not there", func(t *testing.T) { missing(t, s, path.Join(dir, "missing")) })
	t.Run("names", func(t *testing.T) { names(t, s, path.Join(dir, "names")) })
	t.Run("called off", func(t *testing.T) { calledOff(t, s, path.Join(dir, "off")) })
	t.Run("many at a time", func(t *testing.T) { parallel(t, s, path.Join(dir, "many")) })
}

func sizes(t *testing.T, s tested, dir string, blocks []int) {
	for i, n := range slices.Concat([]int{0, 1, 511, 512, 513, 65535, 65536, 65537, 300_000}, blocks) {
		name, want := path.Join(dir, "below", fmt.Sprint(n)), Noise(n, uint64(i)) //nolint:gosec // small
		Put(t, s, name, want)
		if got := Get(t, s, name, 0); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: other ones came, %d of them", n, len(got))
		}
		for _, at := range []int{1, 511, n / 2, n - 1} {
			if at <= 0 || at >= n {
				continue
			}
			if got := Get(t, s, name, int64(at)); !bytes.Equal(got, want[at:]) {
				t.Errorf("%d bytes from %d on: other ones came, %d of them", n, at, len(got))
			}
		}
		info, err := s.Stat(t.Context(), name)
		if err != nil || info.Size != int64(n) || info.Dir || info.ModTime.IsZero() || info.Validator == "" ||
			info.Path != name {
			t.Errorf("%d bytes: got %+v, %v", n, info, err)
		}
	}
}

func there(t *testing.T, s tested, dir string) {
	name := path.Join(dir, "a")
	Put(t, s, name, []byte("first"))
	if _, err := s.Create(t.Context(), name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: got %v, want %v", err, fs.ErrExist)
	}
	if got := Get(t, s, name, 0); string(got) != "first" {
		t.Errorf("the file is %q", got)
	}
	if _, err := s.Create(t.Context(), dir); err == nil {
		t.Error("over a folder: it is made")
	}
	if _, err := s.Create(t.Context(), path.Join(name, "below")); err == nil {
		t.Error("below a file: it is made")
	}
}

func folders(t *testing.T, s tested, dir string) {
	ctx := t.Context()
	for range 2 { // one that is there is as good
		if err := s.MkdirAll(ctx, path.Join(dir, "a/b/c")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"z", "a/1", "b", "a b", "a.b", "B", "a/b/2"} {
		Put(t, s, path.Join(dir, name), []byte(name))
	}
	entries, err := s.List(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, strings.TrimPrefix(e.Path, dir+"/")+map[bool]string{true: "/"}[e.Dir])
		if !e.Dir && (e.Size != int64(len(path.Base(e.Path))) || e.Validator == "") {
			t.Errorf("got %+v", e)
		}
	}
	if want := []string{"B", "a/", "a b", "a.b", "b", "z"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := s.List(ctx, path.Join(dir, "z")); err == nil {
		t.Error("a file is listed")
	}
	if err := s.Prune(ctx, path.Join(dir, "a")); err != nil {
		t.Errorf("a folder with something in it: %v", err)
	}
	if info, err := s.Stat(ctx, path.Join(dir, "a")); err != nil || !info.Dir {
		t.Errorf("it is pruned: %+v, %v", info, err)
	}
	if err := s.Prune(ctx, path.Join(dir, "a/b/c")); err != nil {
		t.Error(err)
	}
	for range 2 { // also when it is gone
		if err := s.Prune(ctx, path.Join(dir, "a/b/c")); err != nil {
			t.Error(err)
		}
		if _, err := s.Stat(ctx, path.Join(dir, "a/b/c")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
	}
	if err := s.MkdirAll(ctx, path.Join(dir, "z")); err == nil {
		t.Error("a folder is made where a file is")
	}
}

func renaming(t *testing.T, s tested, dir string) {
	ctx := t.Context()
	at := func(name string) string { return path.Join(dir, name) }
	Put(t, s, at("new"), []byte("new"))
	Put(t, s, at("old"), []byte("old"))
	if err := s.Rename(ctx, at("new"), at("old")); err != nil {
		t.Fatal(err)
	}
	if got := Get(t, s, at("old"), 0); string(got) != "new" {
		t.Errorf("over a file: got %q", got)
	}
	Put(t, s, at("folder/file"), []byte("1"))
	if err := s.Rename(ctx, at("folder"), at("moved")); err != nil {
		t.Fatal(err)
	}
	if got := Get(t, s, at("moved/file"), 0); string(got) != "1" {
		t.Errorf("in a folder: got %q", got)
	}
	Put(t, s, at("folder/file"), []byte("2"))
	if err := s.Rename(ctx, at("folder"), at("moved")); err == nil {
		t.Error("a folder takes the place of one with something in it")
	}
	if got := Get(t, s, at("moved/file"), 0); string(got) != "1" {
		t.Errorf("it was replaced: got %q", got)
	}
	if err := s.MkdirAll(ctx, at("empty")); err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(ctx, at("folder"), at("empty")); err != nil {
		t.Errorf("over an empty folder: %v", err)
	}
	if err := s.Rename(ctx, at("old"), at("moved")); err == nil {
		t.Error("a file takes the place of a folder")
	}
	if err := s.Rename(ctx, at("moved"), at("old")); err == nil {
		t.Error("a folder takes the place of a file")
	}
	if err := s.Rename(ctx, at("none"), at("other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: got %v", err)
	}
}

func removing(t *testing.T, s tested, dir string) {
	Put(t, s, path.Join(dir, "a/b/c"), []byte("1"))
	Put(t, s, path.Join(dir, "a/d"), []byte("2"))
	for _, name := range []string{"a/d", "a"} {
		if err := s.Remove(t.Context(), path.Join(dir, name)); err != nil {
			t.Error(err)
		}
		if err := s.Remove(t.Context(), path.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, again: got %v", name, err)
		}
	}
}

func versions(t *testing.T, s tested, dir string) {
	ctx, name := t.Context(), path.Join(dir, "a")
	Put(t, s, name, []byte("version one"))
	one, err := s.Stat(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Open(ctx, name, store.Position{Offset: 8, Validator: one.Validator})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c)
	if err = errors.Join(err, c.Close()); err != nil || string(rest) != "one" || c.Offset != 8 {
		t.Errorf("the same version: got %q from %d, %v", rest, c.Offset, err)
	}
	Put(t, s, name+".new", []byte("version two"))
	if err := s.Rename(ctx, name+".new", name); err != nil {
		t.Fatal(err)
	}
	c, err = s.Open(ctx, name, store.Position{Offset: 8, Validator: one.Validator})
	if err != nil {
		t.Fatal(err)
	}
	rest, err = io.ReadAll(c)
	if err = errors.Join(err, c.Close()); err != nil || string(rest) != "version two" || c.Offset != 0 ||
		c.Info.Validator == one.Validator {
		t.Errorf("another version: got %q from %d, %v", rest, c.Offset, err)
	}
	if c, err = s.Open(ctx, name, store.Position{Offset: 100}); err != nil || c.Offset != 0 {
		t.Fatalf("beyond its end: got %+v, %v", c, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func missing(t *testing.T, s tested, dir string) {
	ctx, name := t.Context(), path.Join(dir, "no", "such")
	_, openErr := s.Open(ctx, name, store.Position{})
	_, statErr := s.Stat(ctx, name)
	_, listErr := s.List(ctx, name)
	for what, err := range map[string]error{
		"open": openErr, "stat": statErr, "list": listErr, "remove": s.Remove(ctx, name),
	} {
		told, ok := errors.AsType[*store.Error](err)
		if !errors.Is(err, fs.ErrNotExist) || !ok || told.Op != what || !strings.Contains(told.URL, name) ||
			told.Hint == "" {
			t.Errorf("%s: got %v, want one that names it, and what would do", what, err)
		}
	}
	if err := s.MkdirAll(ctx, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(ctx, dir, store.Position{}); !errors.Is(err, store.ErrNotFile) {
		t.Errorf("a folder is opened: %v", err)
	}
}

func names(t *testing.T, s tested, dir string) {
	for _, name := range []string{
		"with blank", "per%20cent", "uml-äöü-日本", "question?mark", "hash#", "star*", "[a]", "-dash", ".dot",
		"a&b=c",
		"quo'te\"", strings.Repeat("long", 60),
	} {
		Put(t, s, path.Join(dir, name), []byte(name))
		if got := Get(t, s, path.Join(dir, name), 0); string(got) != name {
			t.Errorf("%q: got %q", name, got)
		}
	}
	entries, err := s.List(t.Context(), dir)
	if err != nil || len(entries) != 12 {
		t.Errorf("got %d names, %v", len(entries), err)
	}
}

func calledOff(t *testing.T, s tested, dir string) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	name := path.Join(dir, "a")
	Put(t, s, name, Noise(1<<20, 1))
	c, err := s.Open(ctx, name, store.Position{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	cancel(why)
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, why) {
		t.Errorf("a read that is called off ends with %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func parallel(t *testing.T, s tested, dir string) {
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			want := Noise(200_000+i, uint64(i)) //nolint:gosec // small
			name := path.Join(dir, fmt.Sprint(i%3), fmt.Sprint(i))
			w, err := s.Create(t.Context(), name)
			if err == nil {
				_, err = w.Write(want)
				err = errors.Join(err, w.Close())
			}
			if err == nil {
				err = s.Rename(t.Context(), name, name+".final")
			}
			var c *store.Content
			if err == nil {
				c, err = s.Open(t.Context(), name+".final", store.Position{})
			}
			if err != nil {
				t.Error(err)
				return
			}
			got, err := io.ReadAll(c)
			if err = errors.Join(err, c.Close()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("file %d: got %d bytes, %v", i, len(got), err)
			}
		})
	}
	all.Wait()
}
