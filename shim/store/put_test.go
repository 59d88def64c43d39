package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// breaking is a store of a disk whose first files break after so many bytes; the files can be gone on with, or not.
type breaking struct {
	store.Store
	breaks, after int
	resumable     bool
	began         []int64
}

func (b *breaking) Create(ctx context.Context, path string) (io.WriteCloser, error) {
	w, err := b.Store.Create(ctx, path)
	if err != nil {
		return nil, err
	}
	b.began = append(b.began, 0)
	made := &breakingFile{WriteCloser: w, on: b, left: b.after}
	if b.resumable {
		return resumableFile{made}, nil
	}
	return made, nil
}

type breakingFile struct {
	io.WriteCloser
	on      *breaking
	left    int
	written int64
}

var errBroken = fmt.Errorf("%w: broken", store.ErrUnreachable)

func (f *breakingFile) Write(p []byte) (int, error) {
	if f.on.breaks > 0 && len(p) > f.left {
		f.on.breaks--
		return 0, errBroken
	}
	f.left -= len(p)
	n, err := f.WriteCloser.Write(p)
	f.written += int64(n)
	return n, err
}

type resumableFile struct{ *breakingFile }

func (f resumableFile) Resume(context.Context) (int64, error) {
	f.left = f.on.after
	f.on.began = append(f.on.began, f.written)
	return f.written, nil
}

// What breaks while it is put is tried again, and goes on where the store can.
func TestPutGoesOn(t *testing.T) {
	const piece = 32 << 10
	for _, tt := range []struct {
		name      string
		resumable bool
		breaks    int
		began     string
		ok        bool
	}{
		{"on", true, 3, "[0 65536 131072 196608]", true},
		{"anew", false, 2, "[0 0 0]", true},
		{"in vain", false, 100, "[0 0 0 0 0 0 0]", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, content := t.TempDir(), bytes.Repeat([]byte("muster. "), 32<<10)
				from, to := filepath.Join(dir, "from"), filepath.Join(dir, "store", "to")
				must(t, os.WriteFile(from, content, 0o600))
				b := &breaking{Store: file.New(file.Machine{}), breaks: tt.breaks, after: 2 * piece, resumable: tt.resumable}
				got, err := store.Put(t.Context(), to, from, digestOf(content), store.Set{"file": func(context.Context, string) (store.Store, string, error) { return b, to, nil }})
				if (err == nil) != tt.ok || tt.ok && got != digestOf(content) {
					t.Errorf("got %s, %v", got, err)
				}
				if fmt.Sprint(b.began) != tt.began {
					t.Errorf("began at %v, want %s", b.began, tt.began)
				}
				text, err := os.ReadFile(to)
				if tt.ok && (err != nil || !bytes.Equal(text, content)) || !tt.ok && err == nil {
					t.Errorf("there are %d bytes, %v", len(text), err)
				}
				left, err := os.ReadDir(filepath.Dir(to))
				if want := map[bool]int{true: 1}[tt.ok]; err != nil || len(left) != want {
					t.Errorf("%d files are there, %v, want %d", len(left), err, want)
				}
			})
		})
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
	if _, err := store.Put(t.Context(), to, from, bad, schemes.Local()); !errors.Is(err, store.ErrDigest) || !strings.Contains(err.Error(), good) || !strings.Contains(err.Error(), bad) {
		t.Errorf("got %v, want both digests", err)
	}
	if names := left(); len(names) != 0 {
		t.Errorf("left: %v, want nothing", names)
	}
	for range 2 { // the second replaces
		if got, err := store.Put(t.Context(), "file:"+to, from, good, schemes.Local()); err != nil || got != good {
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
		{"scheme", t.Context(), "hdfs://h/a", from, "", store.ErrScheme, "file, http, https"},
		{"called off", ctx, to, from, "", context.Canceled, ""},
		{"no file", t.Context(), to, from + "x", "", fs.ErrNotExist, "check the path"},
		{"a folder", t.Context(), to, dir, "", nil, "want a file"},
		{"no digest", t.Context(), to, from, "ABC", nil, "64 hex digits"},
	} {
		_, err := store.Put(c.ctx, c.url, c.file, c.want, schemes.Local())
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.is, c.text)
		}
	}
	if names := left(); len(names) != 1 {
		t.Errorf("left: %v, want the file alone", names)
	}
}

func TestPrintable(t *testing.T) {
	for raw, want := range map[string]string{
		"https://u:p@h/a?sig=s": "https://u:xxxxx@h/a?…", "https://h/a": "https://h/a", "/a?b": "/a?b", "file:/a?b": "file:/a?b",
		"http://u:p@h/a%zz": "http://…@h/a%zz",
	} {
		if got := store.Printable(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
