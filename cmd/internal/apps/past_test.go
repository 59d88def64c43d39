package apps

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// The last lines are the same however a log comes in parts.
func TestLastLines(t *testing.T) {
	for _, c := range []struct {
		text  string
		lines int
		want  string
	}{
		{"a\nb\nc\n", 1, "c\n"},
		{"a\nb\nc\n", 2, "b\nc\n"},
		{"a\nb\nc", 1, "c"},
		{"a\nb\nc", 2, "b\nc"},
		{"a\nb\n", 5, "a\nb\n"},
		{"a\n\n\n", 2, "\n\n"},
		{"a\nb\n", 0, ""},
		{"", 3, ""},
	} {
		for name, part := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return struct{ io.Reader }{r} },
			"halves":  iotest.HalfReader, "bytes": iotest.OneByteReader,
		} {
			all, out := &lineCounter{}, &strings.Builder{}
			_, err := io.CopyBuffer(all, part(strings.NewReader(c.text)), make([]byte, 4))
			if err == nil {
				s := &lineSkipper{to: out, skip: all.lines() - c.lines}
				_, err = io.CopyBuffer(s, part(strings.NewReader(c.text)), make([]byte, 4))
			}
			if err != nil || out.String() != c.want {
				t.Errorf("%q, %d lines, %s: got %q, %v, want %q", c.text, c.lines, name, out, err, c.want)
			}
		}
	}
}

// The last line of the largest log that is kept, which has the shortest lines.
func BenchmarkLastLine(b *testing.B) {
	text := bytes.Repeat([]byte("y\n"), 32<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		all := &lineCounter{}
		_, err := io.Copy(all, struct{ io.Reader }{bytes.NewReader(text)})
		if err == nil {
			s := &lineSkipper{to: io.Discard, skip: all.lines() - 1}
			_, err = io.Copy(s, struct{ io.Reader }{bytes.NewReader(text)})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
