package console

import (
	"bytes"
	"testing"
)

// A character that two writes divide stays one, and what begins in one write and ends in the next steers no terminal.
func TestPrintableInParts(t *testing.T) {
	const text, want = "grün \u009b2J 日本 \x1b[2J\n", "grün \\u009b2J 日本 \\u001b[2J\n"
	for size := 1; size < len(text); size++ {
		var b bytes.Buffer
		w := Printable(&b)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Errorf("in parts of %d: got %q, want %q", size, b.String(), want)
		}
	}
	if Raw(Printable(&bytes.Buffer{})) == nil || Terminal(Printable(&bytes.Buffer{})) != nil {
		t.Error("a buffer is no terminal")
	}
}
