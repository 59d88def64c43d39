package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

func TestFileStore(t *testing.T) {
	ctx := t.Context()
	s, dir, err := Open(ctx, t.TempDir())
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
		at     store.Position
		offset int64
		text   string
	}{{store.Position{}, 0, "0123456789"}, {store.Position{Offset: 4, Validator: ""}, 4, "456789"}, {store.Position{Offset: 4, Validator: was.Validator}, 4, "456789"}, {store.Position{Offset: 4, Validator: "other"}, 0, "0123456789"}, {store.Position{Offset: 10, Validator: ""}, 10, ""}, {store.Position{Offset: 11, Validator: ""}, 0, "0123456789"}} {
		f, err := s.Open(ctx, name, c.at)
		must(t, err)
		text, err := io.ReadAll(f)
		if must(t, errors.Join(err, f.Close())); f.Offset != c.offset || string(text) != c.text || f.Info != was {
			t.Errorf("at %v: got %d, %q, %+v, want %d, %q", c.at, f.Offset, text, f.Info, c.offset, c.text)
		}
	}
	must(t, os.Symlink("loop", filepath.Join(dir, "loop"))) // links that lead nowhere are not there
	must(t, os.Symlink("none", filepath.Join(dir, "dangling")))
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
		"open":   second(s.Open(ctx, name, store.Position{})),
		"remove": s.Remove(ctx, name),
		"rename": s.Rename(ctx, name, other),
	} {
		if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), what+" "+name) || !strings.HasSuffix(err.Error(), "; check the path") {
			t.Errorf("%s: got %v, want ErrNotExist with a remedy", what, err)
		}
	}
	if _, err := s.Open(ctx, dir, store.Position{}); err == nil || !strings.Contains(err.Error(), "got a folder, want a file") {
		t.Errorf("got %v, want a folder refused", err)
	}
	if _, err := s.Open(ctx, "/dev/null", store.Position{}); err == nil || !strings.Contains(err.Error(), "want a file") {
		t.Errorf("got %v, want a device refused", err)
	}
}

func second[T any](_ T, err error) error { return err }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
