package transfer

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
	"github.com/muster-agent/muster/tests/folder"
)

func local(t *testing.T) store.Store {
	t.Helper()
	opened, _, err := file.Open(t.Context(), "file:/")
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	folder.Lay(t, dir, map[string]string{
		"a/2": "", "a/10": "", "a/1": "", "a/sub/3": "", "b/x.csv": "", "b/y.txt": "", "b/deep/z.csv": "", "empty/": "",
		"out/part": "", "out/_SUCCESS": "", "out/_temporary/r/w/half": "",
	})
	for _, tt := range []struct{ patterns, want string }{
		{"a", "a/1 a/10 a/2 a/sub/3"},
		{"a/sub a/1", "a/sub/3 a/1"},
		{"a/1 a", "a/1 a/10 a/2 a/sub/3"}, // each once
		{"b/*.csv", "b/x.csv"},
		{"*/*.csv", "b/x.csv"},
		{"b/*", "b/deep/z.csv b/x.csv b/y.txt"},
		{"{a,b}/[1x]*", "a/1 a/10 b/x.csv"},
		{"b/?.{csv,txt}", "b/x.csv b/y.txt"},
		{"out", "out/part"},
		{"empty", ""},
	} {
		var patterns []string
		for p := range strings.FieldsSeq(tt.patterns) {
			patterns = append(patterns, filepath.Join(dir, p))
		}
		files, err := Listing{Store: local(t)}.List(t.Context(), patterns...)
		if err != nil {
			t.Errorf("%s: %v", tt.patterns, err)
			continue
		}
		var got []string
		for _, f := range files {
			got = append(got, strings.TrimPrefix(f.Path, dir+"/"))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %v, want %s", tt.patterns, got, tt.want)
		}
	}
	for _, missing := range []string{"none", "a/none*", "{x,y}/*"} {
		if _, err := (Listing{Store: local(t)}).List(t.Context(), filepath.Join(dir, missing)); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: got %v, want that it is not there", missing, err)
		}
	}
	if err := os.Symlink("..", filepath.Join(dir, "a", "back")); err != nil {
		t.Fatal(err)
	}
	if _, err := (Listing{Store: local(t)}).List(t.Context(), filepath.Join(dir, "a")); err == nil {
		t.Error("a link that leads back is listed without end, or not told of")
	}
}

// vanishing is a store in which a folder is gone by the time that it is looked into.
type vanishing struct {
	store.Store
	folder string
}

func (v vanishing) List(ctx context.Context, path string) ([]store.Info, error) {
	if strings.HasPrefix(path, v.folder) {
		return nil, fs.ErrNotExist
	}
	return v.Store.List(ctx, path)
}

func TestListWithout(t *testing.T) {
	dir := t.TempDir()
	folder.Lay(t, dir, map[string]string{"a": "1", "w/task-0/x": "2", "b/w": "3"})
	work := filepath.Join(dir, "w")
	l := Listing{Store: vanishing{local(t), work}, Without: func(path string) bool { return path == work }}
	for _, pattern := range []string{"", "*"} {
		files, err := l.List(t.Context(), filepath.Join(dir, pattern))
		if err != nil {
			t.Fatalf("%q: %v, want that what is no part of it is not looked into", pattern, err)
		}
		if len(files) != 2 || files[0].Path != dir+"/a" || files[1].Path != dir+"/b/w" {
			t.Errorf("%q: got %v, want a and b/w", pattern, files)
		}
	}
}

func TestBring(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	folder.Lay(t, from, map[string]string{"a": "one", "b": "two", "run": "#!"})
	if err := os.Chmod(filepath.Join(from, "run"), 0o755); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	files, err := Listing{Store: local(t)}.List(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	copies, err := Names("data", files)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Transfer{Parallel: 2}).Bring(t.Context(), folder.Root(t, to), copies); err != nil {
		t.Fatal(err)
	}
	if got, want := folder.Content(t, to), "data/a=one data/b=two data/run=#!"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, want := range map[string]fs.FileMode{"a": 0o644, "run": 0o755} {
		info, err := os.Stat(filepath.Join(to, "data", name))
		if err != nil || info.Mode().Perm()&^0o022 != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	// a change of the copy is no change of the source
	if err := os.WriteFile(filepath.Join(to, "data", "a"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := folder.Content(t, from); !strings.Contains(got, "a=one") {
		t.Errorf("the source is changed: %s", got)
	}
}

// shortStore ends one file before its end, or reads it with an error.
type shortStore struct {
	store.Store
	broken string
	err    error
}

func (s shortStore) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	c, err := s.Store.Open(ctx, path, at)
	if err == nil && filepath.Base(path) == s.broken {
		whole := c.ReadCloser
		c.ReadCloser = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(whole, 2), fail{s.err}), whole}
	}
	return c, err
}

type fail struct{ err error }

func (f fail) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

func TestBringLeavesNothingHalf(t *testing.T) {
	from := t.TempDir()
	folder.Lay(t, from, map[string]string{"a": "one", "b": "two"})
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"cut short", nil, "got 2 bytes, want 3"},
		{"full", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "free some on the file system of"},
		{"forbidden", &fs.PathError{Op: "read", Path: "x", Err: syscall.EACCES}, "permission denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := t.TempDir()
			opened := shortStore{local(t), "b", tt.err}
			copies := []Copy{{File{Store: opened, Path: filepath.Join(from, "b"), Size: 3}, "d/b"}}
			err := Transfer{Parallel: 1, Retries: -1}.Bring(t.Context(), folder.Root(t, to), copies)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), filepath.Join(from, "b")) {
				t.Errorf("got %v, want %s, and the file", err, tt.want)
			}
			if got := folder.Content(t, to); got != "d/" {
				t.Errorf("there is left: %s", got)
			}
		})
	}
}

func TestBringIsCalledOff(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	folder.Lay(t, from, map[string]string{"a": "one"})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	err := Transfer{Parallel: 1}.Bring(ctx, folder.Root(t, to), []Copy{{File{Store: local(t), Path: filepath.Join(from, "a"), Size: 3}, "a"}})
	if !errors.Is(err, why) || folder.Content(t, to) != "" {
		t.Errorf("got %v, %s, want %v and nothing", err, folder.Content(t, to), why)
	}
}

func TestEachGivesTheFirstErrorAndStops(t *testing.T) {
	bad := errors.New("third")
	done := 0
	err := each(t.Context(), 1000, 1, func(_ context.Context, i int) error {
		done++
		if i == 2 {
			return bad
		}
		return nil
	})
	if !errors.Is(err, bad) || done > 4 {
		t.Errorf("got %v after %d, want the third's at once", err, done)
	}
}
