package tail

import (
	"bytes"
	"strings"
)

// mostLine is how much of a line without an end is held, in bytes: a process may write nothing else.
const mostLine = 1 << 20

// Lines hands on whole lines, and parts of one that is longer than mostLine.
type Lines struct {
	rest []byte
	Show func(string)
}

func (w *Lines) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			if len(w.rest) > mostLine {
				w.Flush()
			}
			return len(b), nil
		}
		w.rest = rest
		w.Show(strings.TrimRight(string(line), "\r"))
	}
}

// Flush passes on a last line that does not end with a newline.
func (w *Lines) Flush() {
	if len(w.rest) > 0 {
		w.Show(string(w.rest))
		w.rest = nil
	}
}
