package stream

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// linesOf are a text's lines by the plainest rule: CR LF is read as LF, CR as LF.
func linesOf(text string) []string {
	text = strings.TrimPrefix(text, string(byteOrderMark))
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// gather reads all records.
func gather(t testing.TB, r records) []string {
	t.Helper()
	var all []string
	for {
		var record strings.Builder
		err := r.next(&record)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, record.String())
	}
}

// cutLines reads a text in splits that end at these places.
func cutLines(t testing.TB, text string, byOne bool, ends ...int) []string {
	t.Helper()
	var all []string
	from := 0
	for _, end := range ends {
		var r io.Reader = strings.NewReader(text[from:])
		if byOne {
			r = iotest.OneByteReader(r)
		}
		l, err := newLines(bufio.NewReaderSize(r, 16), int64(from), int64(end))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, gather(t, l)...)
		from = end
	}
	return all
}

// Each line is read once, for all short texts and all ways to cut them in three.
func TestLinesOnceOfAllShortTexts(t *testing.T) {
	letters := "a\r\n"
	texts := []string{""}
	for from, length := 0, 1; length <= 6; length++ {
		to := len(texts)
		for _, before := range texts[from:to] {
			for _, c := range letters {
				texts = append(texts, before+string(c))
			}
		}
		from = to
	}
	for _, text := range texts {
		want := linesOf(text)
		for i := 1; i <= len(text); i++ {
			for j := i; j <= len(text); j++ {
				ends := slices.Compact([]int{i, j, len(text)})
				if got := cutLines(t, text, false, ends...); !slices.Equal(got, want) {
					t.Fatalf("%q cut at %v: got %q, want %q", text, ends, got, want)
				}
			}
		}
	}
}

func TestLinesAreLongerThanBuffers(t *testing.T) {
	long := strings.Repeat("x", 100)
	text := string(byteOrderMark) + long + "\r\n\r\n" + long + "\r" + long + "\n\n" + long
	for i := 1; i < len(text); i++ {
		if got, want := cutLines(t, text, true, i, len(text)), linesOf(text); !slices.Equal(got, want) {
			t.Fatalf("cut at %d: got %q, want %q", i, got, want)
		}
	}
}

func TestLinesTellErrors(t *testing.T) {
	for _, text := range []string{"", "a", "a\r", "a\nb"} {
		l, err := newLines(bufio.NewReaderSize(io.MultiReader(strings.NewReader(text), iotest.ErrReader(errBroken)), 16), 0, -1)
		for err == nil {
			err = l.next(io.Discard)
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("%q: got %v, want %v", text, err, errBroken)
		}
	}
}

func TestValues(t *testing.T) {
	text := "k\tv\nk\tv\tw\nkey alone\n\tv\n\n" + strings.Repeat("k", 50) + "\t" + strings.Repeat("v", 50)
	l, err := newLines(bufio.NewReaderSize(strings.NewReader(text), 16), 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"v", "v\tw", "", "v", "", strings.Repeat("v", 50)}
	if got := gather(t, values{l, '\t'}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzLines cuts any text anywhere.
func FuzzLines(f *testing.F) {
	f.Add("one\r\ntwo\rthree\n\nfour", uint(3), uint(5))
	f.Add("\r\n", uint(1), uint(1))
	f.Add(string(byteOrderMark)+"a\nb", uint(0), uint(0))
	f.Fuzz(func(t *testing.T, text string, i, j uint) {
		if text == "" {
			return
		}
		size := uint(len(text))
		ends := []int{int(1 + i%size), int(1 + j%size), len(text)} //nolint:gosec // below the length
		slices.Sort(ends)
		ends = slices.Compact(ends)
		if got, want := cutLines(t, text, false, ends...), linesOf(text); !slices.Equal(got, want) {
			t.Errorf("%q cut at %v: got %q, want %q", text, ends, got, want)
		}
	})
}
