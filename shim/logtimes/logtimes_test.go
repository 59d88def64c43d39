package logtimes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// rig is a log, and a marker that is told the time.
type rig struct {
	*testing.T
	marker
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t, marker{log: filepath.Join(t.TempDir(), "stdout.log")}}
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) write(text string) {
	f, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	r.must(err)
	r.must(written(f, text))
}

// at is when a byte was written, by the marks on the disk: as seconds behind noon.
func (r *rig) at(path string, offset int64) string {
	r.Helper()
	info, err := os.Lstat(path)
	r.must(err)
	at := Read(r.log, info).At(offset)
	switch {
	case at.IsZero():
		return "unknown"
	case at.Equal(info.ModTime().Truncate(time.Millisecond)):
		return "last"
	}
	return at.Sub(noon).String()
}

func (r *rig) want(path string, offset int64, want string) {
	r.Helper()
	if got := r.at(path, offset); got != want {
		r.Errorf("%s at %d: got %s, want %s", filepath.Base(path), offset, got, want)
	}
}

func TestMarks(t *testing.T) {
	r := newRig(t)
	r.must(r.begin(noon))
	r.must(r.mark(noon)) // no log yet
	r.write("0123")
	r.must(r.mark(noon.Add(time.Second)))
	r.must(r.mark(noon.Add(2 * time.Second))) // nothing new
	r.write("456")
	r.must(r.mark(noon.Add(3 * time.Second)))
	r.write("78") // and nobody looked again
	for offset, want := range []string{"1s", "1s", "1s", "1s", "3s", "3s", "3s", "last", "last"} {
		r.want(r.log, int64(offset), want)
	}
	info, err := os.Lstat(r.log)
	r.must(err)
	f := Read(r.log, info)
	for since, want := range map[time.Duration]int64{0: 0, time.Second: 0, 2 * time.Second: 4, 3 * time.Second: 4, time.Hour: 7} {
		if got := f.Since(noon.Add(since)); got != want {
			t.Errorf("since %s: got %d, want %d", since, got, want)
		}
	}

	// A rotation between two looks.
	r.must(os.Rename(r.log, r.log+".1"))
	r.write("ab")
	r.must(r.mark(noon.Add(4 * time.Second)))
	r.want(r.log+".1", 8, "4s")
	r.want(r.log, 1, "4s")

	// A log that was cut short begins anew.
	r.must(os.Truncate(r.log, 0))
	r.write("c")
	r.must(r.mark(noon.Add(5 * time.Second)))
	r.want(r.log, 0, "5s")
}

func TestEarlierOutput(t *testing.T) {
	r := newRig(t)
	r.write("old")
	r.want(r.log, 0, "unknown") // no marks at all
	r.since = time.Now().Add(time.Hour)
	r.must(r.begin(noon))
	r.write("new")
	r.must(r.mark(noon.Add(time.Second)))
	r.want(r.log, 2, "unknown")
	r.want(r.log, 3, "1s")

	// What an agent that was killed has not marked is no younger than the file.
	again := func(written, now time.Duration) {
		t.Helper()
		next := marker{log: r.log}
		next.marks, next.kept = marksOf(r.log)
		r.must(os.Chtimes(r.log, noon, noon.Add(written)))
		r.must(next.begin(noon.Add(now)))
	}
	r.write("newer")
	again(30*time.Second, time.Minute)
	r.want(r.log, 3, "1s")
	r.want(r.log, 6, "last")
	r.write("set to the future")
	again(time.Hour, 2*time.Minute)
	r.want(r.log, 11, "2m0s")
	r.write("and to the past")
	again(time.Second, 3*time.Minute)
	r.want(r.log, 28, "2m0s")
	r.want(r.log, 6, "30s")
}

// What a process has written before its agent's first look is its own, not an earlier one's.
func TestWrittenBeforeTheFirstLook(t *testing.T) {
	r := newRig(t)
	r.write("quick")
	r.since = noon.Add(-time.Minute)
	r.must(r.begin(noon))
	r.want(r.log, 4, "0s")
}

func TestThin(t *testing.T) {
	r := newRig(t)
	r.marks = append(r.marks, mark{1, 5, noon.UnixMilli()}) // a file that is gone
	r.write("x")
	info, err := os.Lstat(r.log)
	r.must(err)
	for i := range int64(mostMarks) {
		r.marks = append(r.marks, mark{inodeOf(info), i + 1, noon.UnixMilli() + i})
	}
	r.must(r.add(mark{inodeOf(info), mostMarks + 1, noon.UnixMilli() + mostMarks}))
	got, _ := marksOf(r.log)
	if n := len(got); n > mostMarks/2+1 || got[0].inode == 1 || got[n-1].size != mostMarks+1 {
		t.Errorf("%d marks from %v to %v, want half of them, the last one too", n, got[0], got[n-1])
	}
}

// TestForged: the process owns the folder, and may write there what it likes.
func TestForged(t *testing.T) {
	for name, text := range map[string]string{
		"words": "a b c\n1 2\n", "negative": "1 -2 3\n1 2 -3\n", "huge": strings.Repeat("9", 40) + " 1 1\n", "no end": "1 2",
	} {
		r := newRig(t)
		r.write("x")
		r.must(os.WriteFile(r.log+ending, []byte(text), 0o600))
		if marks, _ := marksOf(r.log); len(marks) != 0 {
			t.Errorf("%s: got %v", name, marks)
		}
	}
	r := newRig(t)
	r.write("x")
	secret := filepath.Join(t.TempDir(), "secret")
	r.must(os.WriteFile(secret, nil, 0o600))
	r.must(os.Symlink(secret, r.log+ending))
	if err := r.mark(noon); err == nil {
		t.Error("a link was followed")
	}
}

func TestKeep(t *testing.T) {
	r := newRig(t)
	r.write("x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.must(Keep(ctx, r.log, time.Now().Add(time.Hour)))
	r.want(r.log, 0, "unknown")
}
