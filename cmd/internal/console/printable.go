package console

import (
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/muster-agent/muster/shim/wording"
)

// Printable returns a writer that hands on text without what steers a terminal: what muster prints has names, messages
// and texts of strangers. A line break, a tab and all that shows stay.
func Printable(to io.Writer) io.Writer { return &printable{to: to} }

type printable struct {
	to   io.Writer
	half []byte // the beginning of a character that the last Write ended in
}

func (p *printable) Write(text []byte) (int, error) {
	whole := append(p.half, text...)
	end := unfinished(whole)
	p.half = append([]byte(nil), whole[end:]...)
	if _, err := io.WriteString(p.to, wording.Printable(string(whole[:end]))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// unfinished is where the character begins that a text ends in the middle of; its end, if there is none.
func unfinished(text []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if b := text[len(text)-back]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-back:]) {
				return len(text) - back
			}
			break
		}
	}
	return len(text)
}

// Raw is the writer below Printable, for what is a program's or a file's own.
func (p *printable) Raw() io.Writer { return p.to }

// Raw is the stream as it was given to this command.
func Raw(stream io.Writer) io.Writer {
	if p, ok := stream.(interface{ Raw() io.Writer }); ok {
		return p.Raw()
	}
	return stream
}

// Terminal is the stream's terminal; nil: it is none.
func Terminal(stream any) *os.File {
	if w, ok := stream.(io.Writer); ok {
		stream = Raw(w)
	}
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// File is for a file that is printed: as it is, but to a terminal.
func File(stream io.Writer) io.Writer {
	if Terminal(stream) != nil {
		return stream
	}
	return Raw(stream)
}
