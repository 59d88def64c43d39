package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/tests/folder"
)

// brittle is a store that breaks after so many bytes of each try, and then heals.
type brittle struct {
	store.Store
	after  int64 // bytes of a try
	breaks int   // tries that break
	err    error

	mu      sync.Mutex
	opened  []int64 // where each try began
	created int
}

func (b *brittle) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	c, err := b.Store.Open(ctx, path, at)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = append(b.opened, c.Offset)
	if len(b.opened) <= b.breaks {
		c.ReadCloser = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(c.ReadCloser, b.after), fail{b.err}), c.ReadCloser}
	}
	return c, nil
}

func (b *brittle) Create(ctx context.Context, path string) (io.WriteCloser, error) {
	w, err := b.Store.Create(ctx, path)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.created++; b.created <= b.breaks {
		return &brittleWriter{w, b.after, b.err}, nil
	}
	return w, nil
}

type brittleWriter struct {
	io.WriteCloser
	left int64
	err  error
}

func (b *brittleWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, b.err
	}
	b.left -= int64(len(p))
	return b.WriteCloser.Write(p)
}

var errCut = fmt.Errorf("%w: cut", store.ErrUnreachable)

// noise is the same bytes each time, none like those beside it.
func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*i>>3 + i)
	}
	return b
}

func TestBringGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to, want := t.TempDir(), t.TempDir(), noise(1_000_000)
		if err := os.WriteFile(filepath.Join(from, "a"), want, 0o600); err != nil {
			t.Fatal(err)
		}
		opened := &brittle{Store: local(t), after: 300_000, breaks: 3, err: errCut}
		var again []string
		var last Progress
		how := Transfer{Again: func(file, why string) { again = append(again, file+": "+why) }, Report: func(p Progress) { last = p }}
		if err := how.Bring(t.Context(), folder.Root(t, to), []Copy{{File{Store: opened, Path: filepath.Join(from, "a")}, "a"}}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(to, "a"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %d bytes, %v, want %d of the source's", len(got), err, len(want))
		}
		if got := fmt.Sprint(opened.opened); got != "[0 300000 600000 900000]" {
			t.Errorf("began at %s", got)
		}
		if len(again) != 3 || !strings.Contains(again[0], "a: ") || last.Files != 1 || last.All != 1 || last.Bytes != 1_000_000 || !last.Ended {
			t.Errorf("told %q, %+v", again, last)
		}
	})
}

// What has come of another version is not mixed with what comes now.
func TestBringDoesNotMixVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := t.TempDir(), t.TempDir()
		path := filepath.Join(from, "a")
		if err := os.WriteFile(path, bytes.Repeat([]byte("old"), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		opened := &brittle{Store: local(t), after: 1000, breaks: 1, err: errCut}
		change := Transfer{Again: func(string, string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("newer"), 500), 0o600); err != nil {
				t.Error(err)
			}
		}}
		if err := change.Bring(t.Context(), folder.Root(t, to), []Copy{{File{Store: opened, Path: path}, "a"}}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(to, "a")); err != nil || string(got) != strings.Repeat("newer", 500) {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	})
}

// What passes is tried again a bounded number of times, further apart; what will not pass is not.
func TestTriesAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		how   Transfer
		err   error
		tries int
	}{
		{"it may pass", Transfer{}, errCut, usualRetries + 1},
		{"fewer tries", Transfer{Retries: 2}, errCut, 3},
		{"none", Transfer{Retries: -1}, errCut, 1},
		{"it will not pass", Transfer{}, fmt.Errorf("%w: no", fs.ErrPermission), 1},
		{"waited for already", Transfer{}, fmt.Errorf("%w, %w", errCut, store.ErrWaited), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, to := t.TempDir(), t.TempDir()
				folder.Lay(t, from, map[string]string{"a": "something"})
				opened := &brittle{Store: local(t), after: 0, breaks: 100, err: tt.err}
				begun := time.Now()
				err := tt.how.Bring(t.Context(), folder.Root(t, to), []Copy{{File{Store: opened, Path: filepath.Join(from, "a")}, "a"}})
				if !errors.Is(err, tt.err) || len(opened.opened) != tt.tries || folder.Content(t, to) != "" {
					t.Errorf("%v after %d tries, want %v after %d; left %q", err, len(opened.opened), tt.err, tt.tries, folder.Content(t, to))
				}
				if took := time.Since(begun); tt.tries > 3 && (took < 15*time.Second || took > 3*time.Minute) {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// silent gives nothing until its context ends.
type silent struct{ store.Store }

func (s silent) Open(ctx context.Context, _ string, _ store.Position) (*store.Content, error) {
	return &store.Content{ReadCloser: io.NopCloser(quiet{ctx}), Info: store.Info{Size: 3}}, nil
}

type quiet struct{ ctx context.Context }

func (q quiet) Read([]byte) (int, error) {
	<-q.ctx.Done()
	return 0, context.Cause(q.ctx)
}

func TestAStallIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var why []string
		how := Transfer{Retries: 1, Again: func(_, reason string) { why = append(why, reason) }}
		err := how.Bring(t.Context(), folder.Root(t, t.TempDir()), []Copy{{File{Store: silent{local(t)}, Path: "/x/y"}, "y"}})
		if !errors.Is(err, store.ErrUnreachable) || len(why) != 1 || !strings.Contains(why[0], "nothing moved for 2m0s") || !strings.Contains(err.Error(), "/x/y") {
			t.Errorf("got %v, %q", err, why)
		}
	})
}

// The first reason to end is told together with the file that was under way.
func TestALimitNamesTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := errors.New("not done after 5s")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, limit)
		defer cancel()
		err := Transfer{}.Bring(ctx, folder.Root(t, t.TempDir()), []Copy{{File{Store: silent{local(t)}, Path: "/x/y"}, "y"}})
		if !errors.Is(err, limit) || !strings.Contains(err.Error(), "copy /x/y to ") {
			t.Errorf("got %v", err)
		}
	})
}

func TestSendBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to, want := t.TempDir(), t.TempDir(), noise(700_000)
		if err := os.WriteFile(filepath.Join(from, "a"), want, 0o600); err != nil {
			t.Fatal(err)
		}
		opened := &brittle{Store: local(t), after: 600_000, breaks: 2, err: errCut}
		if err := (Transfer{}).Send(t.Context(), opened, []store.Upload{{From: folder.Root(t, from), Name: "a", To: filepath.Join(to, "d", "a")}}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(to, "d", "a"))
		if err != nil || !bytes.Equal(got, want) || opened.created != 3 {
			t.Errorf("got %d bytes, %v after %d tries, want %d after 3", len(got), err, opened.created, len(want))
		}
		// what is there before the first try is somebody's
		err = Transfer{}.Send(t.Context(), opened, []store.Upload{{From: folder.Root(t, from), Name: "a", To: filepath.Join(to, "d", "a")}})
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("over a file of another's: got %v", err)
		}
	})
}

// blocks is a store that breaks as brittle does, and keeps whole blocks of a file that breaks.
type blocks struct {
	*brittle
	size    int64
	resumed []int64
	refuses error // to go on
}

type blocksWriter struct {
	*os.File
	of   *blocks
	left int64 // bytes until it breaks
}

// lives is how much the next try takes.
func (b *blocks) lives() int64 {
	if b.created+len(b.resumed) > b.breaks {
		return 1 << 40
	}
	return b.after
}

func (b *blocks) Create(_ context.Context, path string) (io.WriteCloser, error) {
	b.created++
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return &blocksWriter{f, b, b.lives()}, err
}

func (w *blocksWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, errCut
	}
	w.left -= int64(len(p))
	return w.File.Write(p)
}

func (w *blocksWriter) Resume(context.Context) (int64, error) {
	if w.of.refuses != nil {
		return 0, w.of.refuses
	}
	at, err := w.Seek(0, io.SeekCurrent)
	at -= at % w.of.size
	w.of.resumed = append(w.of.resumed, at)
	w.left = w.of.lives()
	_, lost := w.Seek(at, io.SeekStart)
	return at, errors.Join(err, w.Truncate(at), lost)
}

// Where a store keeps what is whole of a file that breaks, only the rest is sent again.
func TestSendGoesOn(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refuses error
		resumed string
		moved   int64
		created int
	}{
		{"it does", nil, "[500000 1000000]", 2_000_000 + 24_288 + 24_288, 1},
		{"it cannot", errors.ErrUnsupported, "[]", 2_000_000 + 2*524_288, 3},
		{"it is away", errCut, "[]", 2_000_000 + 2*524_288, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, to, want := t.TempDir(), t.TempDir(), noise(2_000_000)
				if err := os.WriteFile(filepath.Join(from, "a"), want, 0o600); err != nil {
					t.Fatal(err)
				}
				opened := &blocks{brittle: &brittle{Store: local(t), after: 600_000, breaks: 2, err: errCut}, size: 500_000, refuses: tt.refuses}
				moved := int64(0)
				how := Transfer{Moved: func(_ string, n int64) { moved += n }}
				if err := how.Send(t.Context(), opened, []store.Upload{{From: folder.Root(t, from), Name: "a", To: filepath.Join(to, "a")}}); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(filepath.Join(to, "a")); err != nil || !bytes.Equal(got, want) {
					t.Errorf("got %d bytes, %v, want %d of the source's", len(got), err, len(want))
				}
				if fmt.Sprint(opened.resumed) != tt.resumed || moved != tt.moved || opened.created != tt.created {
					t.Errorf("went on at %d, %d bytes moved, %d created, want %s, %d, %d", opened.resumed, moved, opened.created, tt.resumed, tt.moved, tt.created)
				}
			})
		})
	}
}

// slowEnd looks at what it has for a long time.
type slowEnd struct{ store.Store }

func (s slowEnd) Create(ctx context.Context, path string) (io.WriteCloser, error) {
	w, err := s.Store.Create(ctx, path)
	return slowEndWriter{w, ctx}, err
}

type slowEndWriter struct {
	io.WriteCloser
	ctx context.Context
}

func (s slowEndWriter) Close() error {
	return errors.Join(store.Backoff{First: 20 * time.Minute, Longest: 20 * time.Minute}.Wait(s.ctx, 0), s.WriteCloser.Close())
}

func TestALongLookIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := t.TempDir(), t.TempDir()
		folder.Lay(t, from, map[string]string{"a": "something"})
		how := Transfer{Again: func(_, why string) { t.Error(why) }}
		if err := how.Send(t.Context(), slowEnd{local(t)}, []store.Upload{{From: folder.Root(t, from), Name: "a", To: filepath.Join(to, "a")}}); err != nil {
			t.Error(err)
		}
	})
}

// busy is a store that counts who uses it at a time; each takes a second.
type busy struct {
	store.Store
	mu        sync.Mutex
	now, most int
}

func (b *busy) come(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now += n
	b.most = max(b.most, b.now)
}

type busyFile struct {
	io.ReadCloser
	io.WriteCloser
	of *busy
}

func (f busyFile) Close() error {
	time.Sleep(time.Second)
	f.of.come(-1)
	if f.ReadCloser != nil {
		return f.ReadCloser.Close()
	}
	return f.WriteCloser.Close()
}

func (b *busy) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	b.come(1)
	c, err := b.Store.Open(ctx, path, at)
	if err == nil {
		c.ReadCloser = busyFile{ReadCloser: c.ReadCloser, of: b}
	}
	return c, err
}

func (b *busy) Create(ctx context.Context, path string) (io.WriteCloser, error) {
	b.come(1)
	w, err := b.Store.Create(ctx, path)
	return busyFile{WriteCloser: w, of: b}, err
}

// So many files are under way at a time as are allowed, in both directions, and no more.
func TestParallelIsABound(t *testing.T) {
	for parallel, want := range map[int]int{0: usualParallel, 1: 1, 3: 3, 100: 30} {
		synctest.Test(t, func(t *testing.T) {
			from, there, back := t.TempDir(), t.TempDir(), t.TempDir()
			var uploads []store.Upload
			var copies []Copy
			up, down := &busy{Store: local(t)}, &busy{Store: local(t)}
			for i := range 30 {
				name := fmt.Sprint(i)
				folder.Lay(t, from, map[string]string{name: "something"})
				uploads = append(uploads, store.Upload{From: folder.Root(t, from), Name: name, To: filepath.Join(there, name)})
				copies = append(copies, Copy{File{Store: down, Path: filepath.Join(there, name)}, name})
			}
			how := Transfer{Parallel: parallel}
			if err := errors.Join(how.Send(t.Context(), up, uploads), how.Bring(t.Context(), folder.Root(t, back), copies)); err != nil {
				t.Fatal(err)
			}
			if up.most != want || down.most != want || up.now != 0 || down.now != 0 {
				t.Errorf("%d allowed: up to %d sent and %d brought at a time, want %d; %d and %d are left", parallel, up.most, down.most, want, up.now, down.now)
			}
		})
	}
}

// knowing is a store that knows why nothing comes.
type knowing struct{ store.Store }

func (knowing) Open(ctx context.Context, _ string, _ store.Position) (*store.Content, error) {
	<-ctx.Done()
	return nil, errors.New("DataNode dn1 was asked")
}

// A stall hides nothing of what it called off.
func TestAStallSaysWhatItCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Transfer{Retries: -1}.Bring(t.Context(), folder.Root(t, t.TempDir()), []Copy{{File{Store: knowing{local(t)}, Path: "/x/y"}, "y"}})
		if !store.Transient(err) || !strings.Contains(err.Error(), "nothing moved for 2m0s: DataNode dn1 was asked") {
			t.Errorf("got %v", err)
		}
	})
}
