package stream

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
)

// zipped is a text in a compression by the end of a name.
func zipped(t testing.TB, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch {
	case strings.HasSuffix(name, ".gz"):
		w = gzip.NewWriter(&b)
	case strings.HasSuffix(name, ".deflate"):
		w = zlib.NewWriter(&b)
	default:
		return text
	}
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var update = flag.Bool("update", false, "rewrite the golden files")

// someText has lines of all kinds of length and end.
func someText(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(60) {
		fmt.Fprintf(&b, "%d%s", random.IntN(1000), strings.Repeat("x", random.IntN(1<<random.IntN(8))))
		b.WriteString([]string{"\n", "\r\n", "\r", "\n\n", "\tv\n", "\n"}[random.IntN(6)])
	}
	if random.IntN(2) == 0 {
		b.WriteString("the last has no end")
	}
	return b.String()
}

// valueOf is what a line is by plan.RecordValues.
func valueOf(line string) string {
	_, value, _ := strings.Cut(line, "\t")
	return value
}

// feed gives what a reader is fed.
func feed(t testing.TB, s *Share) (string, Count) {
	t.Helper()
	var out strings.Builder
	var count Count
	if err := s.Feed(t.Context(), &out, &count); err != nil {
		t.Fatal(err)
	}
	if count.Bytes != int64(out.Len()) {
		t.Errorf("counted %d bytes of %d", count.Bytes, out.Len())
	}
	return out.String(), count
}

// Each record is somebody's, exactly once, for all sizes of files, ways to cut and numbers of readers; in blocks the readers
// one after the other have all of it in its order.
func TestEachRecordOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 400 {
		m := &memory{files: map[string]string{}}
		var names, want []string
		form := []plan.RecordForm{plan.RecordLines, plan.RecordValues, plan.RecordNLines, plan.RecordWhole}[random.IntN(4)]
		lines := random.IntN(5)
		for i := range random.IntN(7) {
			name, text := fmt.Sprintf("/in/%d%s", i, []string{"", "", ".txt", ".gz", ".deflate"}[random.IntN(5)]), someText(random)
			names, m.files[name] = append(names, name), zipped(t, name, text)
			switch form {
			case plan.RecordWhole:
				want = append(want, text)
			case plan.RecordValues:
				for _, line := range linesOf(text) {
					want = append(want, valueOf(line))
				}
			case plan.RecordLines, plan.RecordNLines, plan.RecordSequence:
				want = append(want, linesOf(text)...)
			}
		}
		if form == plan.RecordWhole { // an empty file is an empty split
			want = slices.DeleteFunc(want, func(text string) bool { return text == "" })
		}
		workers, shuffle := 1+random.IntN(6), random.IntN(2) == 0
		r := Reading{Form: form, Want: random.IntN(30), Lines: lines, Turn: Turn{Workers: workers, Shuffle: shuffle}}
		var got strings.Builder
		var records int64
		for r.Turn.Worker = range workers {
			share, err := r.Share(m.listed(names...))
			if err != nil {
				t.Fatal(err)
			}
			text, count := feed(t, share)
			records += count.Records
			got.WriteString(text)
		}
		wanted := strings.Join(want, "\n") + "\n"
		if len(want) == 0 {
			wanted = ""
		}
		a, b := strings.Split(got.String(), "\n"), strings.Split(wanted, "\n")
		if shuffle {
			slices.Sort(a)
			slices.Sort(b)
		}
		if form == plan.RecordWhole && slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, ".") }) {
			continue // an empty file that is compressed is a record; TestWhole
		}
		if !slices.Equal(a, b) || records != int64(len(want)) {
			t.Fatalf("round %d: %s of %d files, %d readers, shuffle %t: got %d records %q, want %d %q", round, form, len(names), workers, shuffle, records, a, len(want), b)
		}
	}
}

func TestWhole(t *testing.T) {
	m := &memory{files: map[string]string{"/a": "one\r\ntwo", "/b.gz": zipped(t, ".gz", "three\n")}}
	share, err := Reading{Form: plan.RecordWhole, Turn: Turn{Workers: 1}}.Share(m.listed("/a", "/b.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := feed(t, share); got != "one\r\ntwo\nthree\n\n" {
		t.Errorf("got %q", got)
	}
}

// Two groups of lines of each file, dealt out in turn.
func TestNLines(t *testing.T) {
	m := &memory{files: map[string]string{"/a": "1\n2\n3\n", "/b": "", "/c": "4\n5\n6\n7\n8"}}
	for shuffle, want := range map[bool][]string{true: {"1\n2\n4\n5\n8\n", "3\n6\n7\n"}, false: {"1\n2\n3\n4\n5\n", "6\n7\n8\n"}} {
		for worker := range 2 {
			share, err := Reading{Form: plan.RecordNLines, Lines: 2, Turn: Turn{2, worker, shuffle}}.Share(m.listed("/a", "/b", "/c"))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // an epoch does not depend on the one before
				got, count := feed(t, share)
				if got != want[worker] || count.Splits != []int{3, 2}[worker] {
					t.Errorf("shuffle %t: reader %d got %q in %d splits, want %q", shuffle, worker, got, count.Splits, want[worker])
				}
			}
		}
	}
}

func TestWhatIsNotRead(t *testing.T) {
	m := &memory{files: map[string]string{"/a.snappy": "x", "/b.gz": "this is no gzip", "/c.gz": zipped(t, ".gz", strings.Repeat("cut off", 1000))[:40]}}
	reading := Reading{Form: plan.RecordLines, Turn: Turn{Workers: 1}}
	if _, err := reading.Share(m.listed("/a.snappy")); !errors.Is(err, ErrCodec) || !strings.Contains(err.Error(), "/a.snappy") {
		t.Errorf("snappy: got %v, want %v", err, ErrCodec)
	}
	for name, want := range map[string]error{"/b.gz": gzip.ErrHeader, "/c.gz": io.ErrUnexpectedEOF} {
		share, err := reading.Share(m.listed(name))
		if err != nil {
			t.Fatal(err)
		}
		err = share.Feed(t.Context(), io.Discard, new(Count))
		if e, ok := errors.AsType[*ReadError](err); !ok || e.Path != name || !errors.Is(err, want) {
			t.Errorf("%s: got %v, want a ReadError with %v", name, err, want)
		}
	}
}

// Whoever reads no more has the feeding end with the error of the write, not as a fault of a file.
func TestFeedEndsWithItsReader(t *testing.T) {
	m := &memory{files: map[string]string{"/a": strings.Repeat("line\n", 1<<20)}}
	share, err := Reading{Turn: Turn{Workers: 1}, Form: plan.RecordLines}.Share(m.listed("/a"))
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	if err := r.CloseWithError(errBroken); err != nil {
		t.Fatal(err)
	}
	own := func(err error) bool {
		_, files := errors.AsType[*ReadError](err)
		return errors.Is(err, errBroken) && !files
	}
	if err := share.Feed(t.Context(), w, new(Count)); !own(err) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	if err := share.Feed(ctx, io.Discard, new(Count)); !own(err) {
		t.Errorf("called off: got %v, want %v", err, errBroken)
	}
}

// stopped takes a little and then nothing more until it is let go.
type stopped struct {
	most  int
	full  chan struct{}
	onTo  chan struct{}
	taken int
}

func (s *stopped) Write(b []byte) (int, error) {
	if s.taken+len(b) > s.most {
		close(s.full)
		<-s.onTo
		return 0, errBroken
	}
	s.taken += len(b)
	return len(b), nil
}

// A reader that is stopped is not read ahead of by more than the buffers.
func TestFeedReadsNoFurtherThanItsBuffers(t *testing.T) {
	for name, text := range map[string]string{
		"/short": strings.Repeat("a line of text\n", 1<<20), "/long": strings.Repeat("x", 16<<20),
		"/zip.gz": zipped(t, ".gz", randomText(8<<20)),
	} {
		m := &memory{files: map[string]string{name: text}}
		share, err := Reading{Form: plan.RecordLines, Turn: Turn{Workers: 1}}.Share(m.listed(name))
		if err != nil {
			t.Fatal(err)
		}
		to := &stopped{most: 1 << 20, full: make(chan struct{}), onTo: make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- share.Feed(t.Context(), to, new(Count)) }()
		<-to.full
		taken := m.taken.Load()
		if most := int64(to.taken + feedBuffer + 2*readBuffer); taken > most {
			t.Errorf("%s: %d bytes were read, %d taken, want at most %d", name, taken, to.taken, most)
		}
		close(to.onTo)
		if err := <-done; !errors.Is(err, errBroken) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// randomText does not get smaller.
func randomText(size int) string {
	random := rand.NewChaCha8([32]byte{})
	b := make([]byte, size)
	_, _ = random.Read(b) // it never fails
	for i := range b {
		b[i] = 'a' + b[i]%26
	}
	return string(b)
}

func TestRepeat(t *testing.T) {
	m := &memory{files: map[string]string{"/a": "one\ntwo\n", "/b": "three"}}
	text := "one\ntwo\nthree\n"
	for _, tt := range []struct {
		name   string
		limit  int64 // of the cache; -1: none
		opened int64
		told   error
	}{
		{"without a cache", -1, 9, nil},
		{"with one", 1 << 20, 3, nil},
		{"with one that is too small", 1, 9, errCacheFull},
	} {
		m.opened.Store(0)
		share, err := Reading{Form: plan.RecordLines, Turn: Turn{Workers: 1}}.Share(m.listed("/a", "/b", "/a"))
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dir.Close() })
		var cache *Cache
		if tt.limit >= 0 {
			if cache, err = NewCache(dir, tt.limit); err != nil {
				t.Fatal(err)
			}
		}
		var out strings.Builder
		var told error
		var count Count
		if err := Repeat(t.Context(), share, &out, 3, cache, &count, func(err error) { told = err }); err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat(text+"one\ntwo\n", 3)
		if out.String() != want || m.opened.Load() != tt.opened || !errors.Is(told, tt.told) || count.Bytes != int64(len(want)) {
			t.Errorf("%s: got %q, files opened %d times, told %v, counted %d", tt.name, out.String(), m.opened.Load(), told, count.Bytes)
		}
		if cache != nil {
			if err := cache.Close(); err != nil {
				t.Error(err)
			}
		}
		if left, err := os.ReadDir(dir.Name()); err != nil || len(left) > 0 {
			t.Errorf("%s: left in the folder: %v, %v", tt.name, left, err)
		}
	}
}

// A connection that breaks anywhere is taken up where it broke; a file that is another by then is an error.
func TestReadingGoesOn(t *testing.T) {
	text := randomText(3000)
	m := &memory{files: map[string]string{"/a": text}}
	broken := map[int64]bool{}
	m.fail = func(_ string, at int64) error {
		if at%5 == 0 && !broken[at] {
			broken[at] = true
			return errBroken
		}
		return nil
	}
	tried := 0
	again := func(_ context.Context, _ string, failed int, err error) bool {
		tried++
		return errors.Is(err, errBroken) && failed < 3
	}
	r, err := read(t.Context(), m.listed("/a")[0], 10, again)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || string(got) != text[10:] || tried == 0 {
		t.Errorf("got %d bytes, %v, after %d tries", len(got), err, tried)
	}
	m.fail = func(string, int64) error { return errBroken }
	r, err = read(t.Context(), m.listed("/a")[0], 0, again)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, errBroken) {
		t.Errorf("broken for ever: got %v", err)
	}
	m.fail = func(_ string, at int64) error {
		if at > 100 {
			m.version++
			return errBroken
		}
		return nil
	}
	r, err = read(t.Context(), m.listed("/a")[0], 0, again)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "it has changed while it was read") {
		t.Errorf("changed: got %v", err)
	}
}

func TestReadingASmallerFile(t *testing.T) {
	m := &memory{files: map[string]string{"/a": "12345"}}
	file := m.listed("/a")[0]
	file.Size = 9
	share, err := Reading{Form: plan.RecordLines, Turn: Turn{Workers: 1}}.Share([]transfer.File{file})
	if err != nil {
		t.Fatal(err)
	}
	err = share.Feed(t.Context(), io.Discard, new(Count))
	if e, ok := errors.AsType[*transfer.SizeError](err); !ok || e.Want != 9 || e.Got != 5 {
		t.Errorf("got %v", err)
	}
}

// A read of which nothing comes is called off, and the file opened again; a stall for ever is an error of its own.
func TestReadingThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{files: map[string]string{"/a": "one\ntwo\n"}, stalls: 2}
		share, err := Reading{Form: plan.RecordLines, Turn: Turn{Workers: 1}, Again: transfer.Transfer{}.Persevere}.Share(m.listed("/a"))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := feed(t, share); got != "one\ntwo\n" || m.opened.Load() != 3 {
			t.Errorf("got %q, opened %d times", got, m.opened.Load())
		}
		m.stalls = 100
		err = share.Feed(t.Context(), io.Discard, new(Count))
		if _, ok := errors.AsType[*ReadError](err); !ok || !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "nothing came for 2m0s") {
			t.Errorf("got %v", err)
		}
	})
}

// Which splits are whose, for up to 13 of them and 5 readers.
func TestDealGolden(t *testing.T) {
	var text strings.Builder
	for _, shuffle := range []bool{false, true} {
		for all := 1; all <= 13; all++ {
			for workers := 1; workers <= 5; workers++ {
				fmt.Fprintf(&text, "shuffle=%t splits=%d readers=%d:", shuffle, all, workers)
				for worker := range workers {
					own := []string{}
					for _, s := range assign(Turn{workers, worker, shuffle}, numberedSplits(all)) {
						own = append(own, s.File.Path)
					}
					fmt.Fprintf(&text, " [%s]", strings.Join(own, " "))
				}
				text.WriteByte('\n')
			}
		}
	}
	const file = "testdata/deal.txt"
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != text.String() {
		t.Errorf("%s is not what is dealt out (-update), %v", file, err)
	}
}

// numberedSplits are splits with their numbers as names.
func numberedSplits(n int) []Split {
	splits := make([]Split, n)
	for i := range splits {
		splits[i].File.Path = strconv.Itoa(i)
	}
	return splits
}
