package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// breaking is a store of a disk whose first files break after so many bytes; the files can be gone on with, or not.
type breaking struct {
	Store
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

var errBroken = fmt.Errorf("%w: broken", ErrUnreachable)

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
				b := &breaking{Store: Files(Machine{}), breaks: tt.breaks, after: 2 * piece, resumable: tt.resumable}
				got, err := put(t.Context(), b, to, from, digestOf(content))
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
