package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/tests/folder"
)

// brought is what one agent after another does with a folder: list what there is, and bring what is missing.
type brought struct {
	t            *testing.T
	from, to     string
	ledger       string
	moved        int64
	until        int64 // bytes, after which the agent ends; 0: it lives
	files        map[string]int
	versionsHide bool
}

func (b *brought) content(name string, n int) []byte {
	return bytes.Repeat([]byte(name+"-"), n/len(name)+1)[:n]
}

func (b *brought) bring() error {
	b.t.Helper()
	opened := local(b.t)
	files, err := Listing{Store: opened}.List(b.t.Context(), b.from)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.versionsHide {
		for i := range files {
			files[i].Version = ""
		}
	}
	copies, err := Names("in", files)
	if err != nil {
		b.t.Fatal(err)
	}
	ledger, err := OpenLedger(folder.Root(b.t, filepath.Dir(b.ledger)), filepath.Base(b.ledger))
	if err != nil {
		b.t.Fatal(err)
	}
	ledger.step = 16 * copyBuffer
	ctx, cancel := context.WithCancelCause(b.t.Context())
	defer cancel(nil)
	var moved atomic.Int64
	how := Transfer{Parallel: 1, Ledger: ledger, Moved: func(_ string, n int64) {
		if moved.Add(n) >= b.until && b.until > 0 {
			cancel(errEnded)
		}
	}}
	folder := folder.Root(b.t, b.to)
	if err := ledger.Sweep(viewed{folder}, "in", copies); err != nil {
		b.t.Fatal(err)
	}
	err = errors.Join(how.Bring(ctx, folder, copies), ledger.Close())
	b.moved = moved.Load()
	return err
}

// viewed is a folder that is read and changed with the same rights.
type viewed struct{ *os.Root }

func (v viewed) Clear(name string) error { return v.RemoveAll(name) }

func (v viewed) View(read func(fs.FS) error) error { return read(v.FS()) }

var errEnded = errors.New("the agent ends")

func (b *brought) whole() {
	b.t.Helper()
	if err := b.bring(); err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for name, n := range b.files {
		names = append(names, name)
		if got, err := os.ReadFile(filepath.Join(b.to, "in", name)); err != nil || !bytes.Equal(got, b.content(name, n)) {
			b.t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
	}
	there, err := os.ReadDir(filepath.Join(b.to, "in"))
	if err != nil || len(there) != len(names) {
		b.t.Errorf("there is %v, %v", there, err)
	}
}

// What has come is not brought again: not by who comes after one that ended in the middle of it, nor in another attempt. What is
// not what came is brought again.
func TestWhatHasComeIsKept(t *testing.T) {
	const part = copyBuffer
	in := func(b *brought, name string) string { return filepath.Join(b.to, "in", name) }
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name    string
		until   int64 // of the first agent
		between func(t *testing.T, b *brought)
		least   int64 // bytes that the second brings
		most    int64
	}{
		{"all was there", 0, func(*testing.T, *brought) {}, 0, 0},
		{"ended in the second file", 30 * part, func(*testing.T, *brought) {}, 20 * part, 23 * part},
		{"ended in the first", 3 * part, func(*testing.T, *brought) {}, 47 * part, 48 * part},
		{"killed without a last word", 30 * part, func(t *testing.T, b *brought) { // the last entry is that of 16 parts of a file
			text, err := os.ReadFile(b.ledger)
			must(t, err)
			lines := strings.SplitAfter(string(text), "\n")
			must(t, os.WriteFile(b.ledger, []byte(strings.Join(lines[:len(lines)-2], "")+`{"to":"in/b","fr`), 0o600))
		}, 24 * part, 25 * part},
		{"a file was changed by its process", 0, func(t *testing.T, b *brought) {
			info, err := os.Stat(in(b, "a"))
			must(t, err)
			f, err := os.OpenFile(in(b, "a"), os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt([]byte("X"), 5*part)
			must(t, errors.Join(err, f.Close()))
			must(t, os.Chtimes(in(b, "a"), info.ModTime(), info.ModTime())) // and does not show it
		}, 10 * part, 10 * part},
		{"the half was changed", 30 * part, func(t *testing.T, b *brought) {
			f, err := os.OpenFile(filepath.Join(b.to, halfOf("in/b")), os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteAt([]byte("X"), part)
			must(t, errors.Join(err, f.Close()))
		}, 40 * part, 40 * part},
		{"the half is longer than was noted", 30 * part, func(t *testing.T, b *brought) {
			f, err := os.OpenFile(filepath.Join(b.to, halfOf("in/b")), os.O_WRONLY|os.O_APPEND, 0)
			must(t, err)
			_, err = f.Write(make([]byte, part))
			must(t, errors.Join(err, f.Close()))
		}, 20 * part, 23 * part},
		{"the source was changed", 30 * part, func(t *testing.T, b *brought) {
			b.files["b"] = 39 * part
			must(t, os.WriteFile(filepath.Join(b.from, "b"), b.content("b", 39*part), 0o600))
		}, 39 * part, 39 * part},
		{"a source is no more", 0, func(t *testing.T, b *brought) {
			delete(b.files, "b")
			must(t, os.Remove(filepath.Join(b.from, "b")))
		}, 0, 0},
		{"a process left files and links", 0, func(t *testing.T, b *brought) {
			must(t, os.MkdirAll(in(b, "made/by/him"), 0o755))
			must(t, os.WriteFile(in(b, "made/by/x"), nil, 0o600))
			must(t, os.Remove(in(b, "a")))
			must(t, os.Symlink(filepath.Join(b.from, "a"), in(b, "a")))
		}, 10 * part, 10 * part},
		{"a pipe is in a file's place", 0, func(t *testing.T, b *brought) {
			must(t, os.Remove(in(b, "a")))
			must(t, syscall.Mkfifo(in(b, "a"), 0o600))
		}, 10 * part, 10 * part},
		{"a folder is in a file's place", 0, func(t *testing.T, b *brought) {
			must(t, os.Remove(in(b, "a")))
			must(t, os.MkdirAll(in(b, "a/b/c"), 0o755))
		}, 10 * part, 10 * part},
		{"the store knows no versions", 30 * part, func(_ *testing.T, b *brought) { b.versionsHide = true }, 50 * part, 50 * part},
		{"the ledger is torn", 30 * part, func(t *testing.T, b *brought) { must(t, os.WriteFile(b.ledger, []byte("{{\n\x00"), 0o600)) }, 50 * part, 50 * part},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &brought{t: t, from: t.TempDir(), to: t.TempDir(), files: map[string]int{"a": 10 * part, "b": 40 * part}, until: tt.until}
			b.ledger = filepath.Join(t.TempDir(), "ledger")
			for name, n := range b.files {
				must(t, os.WriteFile(filepath.Join(b.from, name), b.content(name, n), 0o600))
			}
			if tt.until == 0 {
				b.whole()
			} else if err := b.bring(); !errors.Is(err, errEnded) {
				t.Fatalf("got %v", err)
			}
			tt.between(t, b)
			b.until = 0
			b.whole()
			if b.moved < tt.least || b.moved > tt.most {
				t.Errorf("%d bytes came, want %d to %d", b.moved, tt.least, tt.most)
			}
			if b.whole(); b.moved != 0 && !b.versionsHide {
				t.Errorf("%d bytes came again", b.moved)
			}
		})
	}
}

// A file that is not to be had is not kept in half.
func TestNoHalfIsLeftOfWhatWillNotCome(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	folder.Lay(t, from, map[string]string{"a": strings.Repeat("x", 1000)})
	ledger, err := OpenLedger(folder.Root(t, to), "ledger")
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	for err, half := range map[error]bool{fmt.Errorf("%w: no", os.ErrPermission): false, fmt.Errorf("%w, %w", errCut, store.ErrWaited): false, errCut: true} {
		opened := &brittle{Store: local(t), after: 500, breaks: 1, err: err}
		got := Transfer{Ledger: ledger, Retries: -1}.Bring(t.Context(), folder.Root(t, to), []Copy{{File{Store: opened, Path: filepath.Join(from, "a"), Version: versionOf(t, filepath.Join(from, "a"))}, "a"}})
		_, lost := os.Stat(filepath.Join(to, halfOf("a")))
		if !errors.Is(got, err) || (lost == nil) != half {
			t.Errorf("%v: got %v, half of it: %v", err, got, lost)
		}
		_ = os.Remove(filepath.Join(to, halfOf("a"))) // of one case alone
	}
}

func versionOf(t *testing.T, path string) string {
	t.Helper()
	info, err := local(t).Stat(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Validator
}

// Who is called off while it looks at what has come takes nothing of that away.
func TestCalledOffWhileWhatHasComeIsChecked(t *testing.T) {
	from, to, content := t.TempDir(), t.TempDir(), noise(1<<20)
	noError(t, os.WriteFile(filepath.Join(from, "a"), content, 0o600))
	ledger, err := OpenLedger(folder.Root(t, to), "ledger")
	noError(t, err)
	defer ledger.Close()
	c := Copy{File{Store: local(t), Path: filepath.Join(from, "a"), Version: versionOf(t, filepath.Join(from, "a"))}, "x"}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errEnded)
	p := &progress{how: Transfer{Ledger: ledger}, all: 1}
	for _, tt := range []struct {
		name  string
		bytes int
		whole bool
	}{{halfOf("x"), 1 << 19, false}, {"x", 1 << 20, true}} {
		noError(t, os.WriteFile(filepath.Join(to, tt.name), content[:tt.bytes], 0o600))
		ledger.note(arrival{To: "x", From: sourceOf(c.From), Version: c.From.Version, Bytes: int64(tt.bytes), Sum: crc32.Checksum(content[:tt.bytes], castagnoli), Whole: tt.whole})
		if err := bring(over, p, folder.Root(t, to), c); !errors.Is(err, errEnded) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if _, err := begin(over, p, folder.Root(t, to), c, halfOf("x")); !errors.Is(err, errEnded) && !tt.whole {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if got, err := os.ReadFile(filepath.Join(to, tt.name)); err != nil || !bytes.Equal(got, content[:tt.bytes]) {
			t.Errorf("%s has %d bytes, %v, want %d", tt.name, len(got), err, tt.bytes)
		}
		if !tt.whole {
			noError(t, os.Remove(filepath.Join(to, tt.name)))
		}
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
