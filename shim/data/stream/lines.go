package stream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// records are the records of one split, one after the other.
type records interface {
	// next writes the text of the next record; io.EOF: the last one was written.
	next(to io.Writer) error
}

// lines are the lines that begin in a split, by the rules of Hadoop's LineRecordReader. A line ends with LF, CR LF or
// CR, which are not part of it. A line that begins right behind the split belongs to the split as well, and the first
// line of any split but a file's first does not: so each line is read once, wherever splits are cut.
type lines struct {
	from    *bufio.Reader
	at, end int64 // where the next line begins; end of the split, -1: end of the file
	first   bool  // the file's first line is next
}

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// newLines begins at an offset of a file; end is -1 for the rest of the file.
func newLines(from *bufio.Reader, at, end int64) (*lines, error) {
	l := &lines{from: from, at: at, end: end, first: at == 0}
	if at > 0 {
		if err := l.line(io.Discard); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return l, nil
	}
	if mark, err := from.Peek(len(byteOrderMark)); err == nil && bytes.Equal(mark, byteOrderMark) {
		_ = l.skip(len(byteOrderMark)) // they are there
	}
	return l, nil
}

func (l *lines) next(to io.Writer) error {
	if l.end >= 0 && l.at > l.end && !l.first { // the mark alone may be longer than the split
		return io.EOF
	}
	l.first = false
	return l.line(to)
}

// line writes the next line, piece by piece; io.EOF: there is none.
func (l *lines) line(to io.Writer) error {
	for begun := false; ; begun = true {
		_, err := l.from.Peek(1)
		if errors.Is(err, io.EOF) && begun {
			return nil
		}
		if err != nil {
			return err
		}
		piece, _ := l.from.Peek(l.from.Buffered()) // it is there
		if i := bytes.IndexByte(piece, '\n'); i >= 0 {
			piece = piece[:i+1]
		}
		cr := bytes.IndexByte(piece, '\r')
		text := piece
		switch {
		case cr >= 0:
			text, piece = piece[:cr], piece[:cr+1]
		case piece[len(piece)-1] == '\n':
			text = piece[:len(piece)-1]
		}
		if _, err := to.Write(text); err != nil {
			return err
		}
		if err := l.skip(len(piece)); err != nil {
			return err
		}
		if cr >= 0 {
			return l.feed()
		}
		if len(text) < len(piece) {
			return nil
		}
	}
}

// feed skips the LF after a CR.
func (l *lines) feed() error {
	after, err := l.from.Peek(1)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil || after[0] != '\n' {
		return err
	}
	return l.skip(1)
}

func (l *lines) skip(n int) error {
	done, err := l.from.Discard(n)
	l.at += int64(done)
	return err
}

// values are the text behind the separator of each line; empty for a line without one.
type values struct {
	*lines
	separator byte
}

func (v values) next(to io.Writer) error {
	return v.lines.next(&behind{to: to, separator: v.separator})
}

// behind passes on the text behind the first separator.
type behind struct {
	to        io.Writer
	separator byte
	met       bool
}

func (b *behind) Write(p []byte) (int, error) {
	text := p
	if !b.met {
		_, text, b.met = bytes.Cut(p, []byte{b.separator})
		if !b.met {
			return len(p), nil
		}
	}
	if _, err := b.to.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// content is a file as one record.
type content struct {
	from io.Reader
	over bool
}

func (c *content) next(to io.Writer) error {
	if c.over {
		return io.EOF
	}
	c.over = true
	_, err := io.Copy(to, c.from)
	return err
}
