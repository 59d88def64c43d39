package status

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// followed is a Follow under way in a bubble, and what it has copied.
type followed struct {
	t      *testing.T
	path   string
	out    safeBuffer
	cancel context.CancelFunc
	done   chan error
}

// safeBuffer may be read while it is written.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func followFile(t *testing.T, path string, offset int64) *followed {
	ctx, cancel := context.WithCancel(t.Context())
	f := &followed{t: t, path: path, cancel: cancel, done: make(chan error, 1)}
	go func() { f.done <- Follow(ctx, path, offset, true, &f.out) }()
	return f
}

func (f *followed) write(text string) {
	f.t.Helper()
	w, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := w.WriteString(text); err != nil {
		f.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// rotate is what the guard does: PATH.1 to PATH.2, PATH to PATH.1.
func (f *followed) rotate() {
	f.t.Helper()
	if err := os.Rename(f.path+".1", f.path+".2"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.path, f.path+".1"); err != nil {
		f.t.Fatal(err)
	}
}

// has lets the follower look twice and compares all that it copied.
func (f *followed) has(want string) {
	f.t.Helper()
	time.Sleep(2*poll + time.Millisecond)
	synctest.Wait()
	if got := f.out.String(); got != want {
		f.t.Fatalf("got %q, want %q", got, want)
	}
}

func (f *followed) end(want string) {
	f.t.Helper()
	f.cancel()
	if err := <-f.done; err != nil {
		f.t.Errorf("Follow: %v", err)
	}
	if got := f.out.String(); got != want {
		f.t.Errorf("at the end: got %q, want %q", got, want)
	}
}

func TestFollow(t *testing.T) {
	for name, play := range map[string]func(f *followed){
		"a file that comes later": func(f *followed) {
			f.has("")
			f.write("one\n")
			f.has("one\n")
			f.end("one\n")
		},
		"growth": func(f *followed) {
			f.write("one\n")
			f.has("one\n")
			f.write("tw")
			f.has("one\ntw")
			f.write("o\n")
			f.has("one\ntwo\n")
			f.end("one\ntwo\n")
		},
		"a rotation": func(f *followed) {
			f.write("one\n")
			f.has("one\n")
			f.write("two\n")
			f.rotate()
			f.write("three\n")
			f.has("one\ntwo\nthree\n")
			f.write("four\n")
			f.end("one\ntwo\nthree\nfour\n")
		},
		"two rotations between two looks": func(f *followed) {
			f.write("one\n")
			f.has("one\n")
			f.rotate()
			f.write("two\n")
			f.rotate()
			f.write("three\n")
			f.has("one\ntwo\nthree\n")
			f.end("one\ntwo\nthree\n")
		},
		"a look between rename and new file": func(f *followed) {
			f.write("one\n")
			f.has("one\n")
			f.rotate()
			f.has("one\n")
			f.write("two\n")
			f.has("one\ntwo\n")
			f.end("one\ntwo\n")
		},
		"a file cut short": func(f *followed) {
			f.write("one\n")
			f.has("one\n")
			if err := os.Truncate(f.path, 0); err != nil {
				f.t.Fatal(err)
			}
			f.has("one\n")
			f.write("2\n")
			f.has("one\n2\n")
			f.end("one\n2\n")
		},
		"a file that comes right before the end": func(f *followed) {
			f.has("")
			f.write("one\n")
			f.end("one\n")
		},
		"a rotation right before the end": func(f *followed) {
			f.write("one\n")
			f.has("one\n")
			f.write("two\n")
			f.rotate()
			f.write("three\n")
			f.end("one\ntwo\nthree\n")
		},
		"what comes right before the end": func(f *followed) {
			f.has("")
			f.write("one\n")
			f.has("one\n")
			f.write("two\n")
			f.end("one\ntwo\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				play(followFile(t, filepath.Join(t.TempDir(), "stdout.log"), 0))
			})
		})
	}
}

func TestFollowFromOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "stdout.log")
		if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f := followFile(t, path, 4)
		f.has("two\n")
		f.rotate()
		f.write("three\n") // the next file is read from its start
		f.has("two\nthree\n")
		f.end("two\nthree\n")
	})
}

func TestFollowOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout.log")
	var out bytes.Buffer
	if err := Follow(t.Context(), path, 0, false, &out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v, want fs.ErrNotExist", err)
	}
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for offset, want := range map[int64]string{0: "one\ntwo\n", 4: "two\n", 8: "", 99: ""} {
		out.Reset()
		if err := Follow(t.Context(), path, offset, false, &out); err != nil {
			t.Errorf("from %d: %v", offset, err)
		}
		if out.String() != want {
			t.Errorf("from %d: got %q, want %q", offset, out.String(), want)
		}
	}
}

func TestFollowEndsWithItsReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stdout.log")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("reader is gone")
	if err := Follow(t.Context(), path, 0, true, failing{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// rotating is a log that is rotated, the oldest of keep files dropped, whenever its follower has taken a part.
type rotating struct {
	f     *followed
	keep  int
	times []int // how often, at each part
	next  int
	out   bytes.Buffer
}

func (r *rotating) Write(p []byte) (int, error) {
	n, err := r.out.Write(p)
	times := 0
	if len(r.times) > 0 {
		times, r.times = r.times[0], r.times[1:]
	}
	for range times {
		for i := r.keep - 1; i > 0; i-- {
			from := r.f.path
			if i > 1 {
				from += "." + strconv.Itoa(i-1)
			}
			if err := os.Rename(from, r.f.path+"."+strconv.Itoa(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.f.t.Error(err)
			}
		}
		r.f.write(strconv.Itoa(r.next) + "\n")
		r.next++
	}
	return n, err
}

// A follower that is slower than its log loses nothing that is kept, and says where something is missing.
func TestFollowFastRotations(t *testing.T) {
	const missing = "muster: lines may be missing here: the log was rotated away before it was read\n"
	for name, tt := range map[string]struct {
		times []int
		want  string
	}{
		"once":                    {[]int{1}, "0\n1\n"},
		"while it reads":          {[]int{1, 2}, "0\n1\n2\n3\n"},
		"to the last kept":        {[]int{3, 0, 0, 0}, "0\n1\n2\n3\n"},
		"one more, and none gone": {[]int{1, 3}, "0\n1\n2\n3\n4\n"},
		"further than kept":       {[]int{6}, "0\n" + missing + "3\n4\n5\n6\n"},
		"further, while it reads": {[]int{1, 7}, "0\n1\n" + missing + "5\n6\n7\n8\n"},
	} {
		r := &rotating{f: &followed{t: t, path: filepath.Join(t.TempDir(), "log")}, keep: 4, times: tt.times, next: 1}
		r.f.write("0\n")
		l := follower{path: r.f.path, to: r}
		if err := l.open(0); err != nil {
			t.Fatal(err)
		}
		if _, _, lost := l.moved(); lost {
			t.Errorf("%s: lost at the start", name)
		}
		for range 8 {
			if err := l.advance(0); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		l.close()
		if got := r.out.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
