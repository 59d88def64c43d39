package console

import (
	"bytes"
	"io"
	"testing"
)

// What a program printed neither steers a terminal nor loses its colours, however it is cut.
func TestOutput(t *testing.T) {
	const text = "a\tb\x1b[1;31mred\x1b[0m é\r 50%\x1b]0;title\x07\x1b[2J\x1b[8mhidden\b\n\x9b"
	const want = "a\tb\x1b[1;31mred\x1b[0m é\r 50%\\u001b]0;title\\u0007\\u001b[2J\\u001b[8mhidden\\u0008\n\\u009b"
	for _, size := range []int{1, 2, 3, 100} {
		var got bytes.Buffer
		o := &output{to: &got}
		for from := 0; from < len(text); from += size {
			if _, err := o.Write([]byte(text[from:min(len(text), from+size)])); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != want {
			t.Errorf("by %d bytes: got %q, want %q", size, got.String(), want)
		}
	}
	var pipe bytes.Buffer
	if _, err := io.WriteString(Output(Printable(&pipe)), text); err != nil || pipe.String() != text {
		t.Errorf("to a pipe: got %q, %v", pipe.String(), err)
	}
}
