package console

import (
	"io"
	"os"
	"slices"
	"strings"
)

// The colours of words: ECMA-48's select graphic rendition, in the eight colours that every terminal's theme has.
const (
	plain  = "\x1b[0m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// colors are the words that have a colour: a phase, an outcome, a mark of doctor's.
var colors = map[string]string{
	"failed": red, "killed": red, "lost": red, "missing": red, "MISSING": red, "fenced": red,
	"backoff": yellow, "interrupted": yellow, "superseded": yellow, "stopping": yellow, "leaving": yellow,
	"stopped": yellow, "no": yellow, "warning": yellow,
	"running": green, "succeeded": green, "ok": green,
}

// colored tells whether words on the stream have a colour: on a terminal that has some, unless NO_COLOR is there and
// not empty (https://no-color.org).
func colored(stream any) bool {
	return Terminal(stream) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Color is line with the first of the words at or behind the byte from in its colour, if the stream shows colours and
// the word stands alone there.
func Color(stream any, line string, from int, word string) string {
	color := colors[word]
	if color == "" || from > len(line) || !colored(stream) {
		return line
	}
	at := strings.Index(line[from:], word)
	if at < 0 {
		return line
	}
	at += from
	end := at + len(word)
	if at > 0 && line[at-1] != ' ' || end < len(line) && !slices.Contains([]byte(" :\n"), line[end]) {
		return line
	}
	return line[:at] + color + word + plain + line[end:]
}

// Print writes a text of muster's own that may have colours; names and messages of strangers in it have been cleaned
// by wording.Line.
func Print(out io.Writer, text string) error {
	if colored(out) {
		out = Raw(out)
	}
	_, err := io.WriteString(out, text)
	return err
}
