package wording

import (
	"strings"
	"unicode/utf8"
)

// narrowest is the least room for text beside an indent: below it words would stand one to a line.
const narrowest = 20

// Wrap breaks a line between words, so that it fits the width; what follows the first line is indented. A word is never
// broken: it may be a path. Without a width the line stays.
func Wrap(line string, width, indent int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	if width-indent < narrowest {
		indent = 4
	}
	var b strings.Builder
	at, text := 0, strings.TrimLeft(line, " ")
	at = len(line) - len(text)
	b.WriteString(line[:at])
	for first := true; text != ""; first = false {
		word := text
		if end := strings.IndexByte(text, ' '); end >= 0 {
			spaces := len(text[end:]) - len(strings.TrimLeft(text[end:], " "))
			word = text[:end+spaces]
		}
		text = text[len(word):]
		n := utf8.RuneCountInString(strings.TrimRight(word, " "))
		if !first && at+n > width && at > indent {
			kept := strings.TrimRight(b.String(), " ")
			b.Reset()
			b.WriteString(kept + "\n" + strings.Repeat(" ", indent))
			at = indent
		}
		b.WriteString(word)
		at += utf8.RuneCountInString(word)
	}
	return strings.TrimRight(b.String(), " ")
}
