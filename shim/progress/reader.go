package progress

import (
	"bytes"
	"io"
	"sync"
)

// mostLine is how much of a line counts: no line of progress is longer.
const mostLine = 4 << 10

// Reader finds the progress in a program's streams.
type Reader struct {
	mu       sync.Mutex
	fraction *float64
	reported bool
}

// Fraction is the newest progress, 0 to 1; nil: there is none.
func (r *Reader) Fraction() *float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fraction == nil {
		return nil
	}
	return new(*r.fraction)
}

// Stream takes what the program writes to one of its streams.
func (r *Reader) Stream() io.Writer { return &stream{reader: r} }

// stream cuts one stream into lines: at newlines, and where a bar is drawn over itself.
type stream struct {
	reader *Reader
	rest   []byte
	bars   bars
}

const ends = "\n\r\b"

func (s *stream) Write(b []byte) (int, error) {
	n := len(b)
	for {
		i := bytes.IndexAny(b, ends)
		part := b
		if i >= 0 {
			part = b[:i]
		}
		room := mostLine - len(s.rest)
		s.rest = append(s.rest, part[:min(len(part), room)]...)
		if i < 0 {
			return n, nil
		}
		s.line(string(s.rest))
		s.rest, b = s.rest[:0], b[i+1:]
	}
}

func (s *stream) line(line string) {
	if f, ok := Reported(line); ok {
		s.reader.set(f, true)
	} else if f, ok := s.bars.read(line); ok {
		s.reader.set(f, false)
	}
}

func (r *Reader) set(f float64, reported bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reported || !r.reported {
		r.fraction, r.reported = &f, reported
	}
}
