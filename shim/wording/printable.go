package wording

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// steers tells of a character that a terminal obeys instead of showing it: controls other than tab and line break, and
// those that turn the direction of writing.
func steers(r rune) bool {
	switch {
	case r == '\t' || r == '\n':
		return false
	case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// Printable is a text that steers no terminal: what would is written as \u001b. That stays one text in JSON.
func Printable(text string) string {
	var b strings.Builder
	done := 0 // up to here text is in b
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		broken := r == utf8.RuneError && size == 1
		if broken {
			r = rune(text[i]) // a terminal of eight bits takes 0x9b for the beginning of a sequence
		}
		if steers(r) {
			b.WriteString(text[done:i])
			fmt.Fprintf(&b, `\u%04x`, r)
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// Line is Printable on one line, without tabs.
func Line(text string) string {
	if strings.ContainsAny(text, "\n\t") {
		text = strings.Join(strings.Fields(text), " ")
	}
	return Printable(text)
}

// Program is a line that a program wrote, as it may stand beside muster's own: its colours stay, and end with the line.
func Program(line string) string {
	text := Colored(line)
	if strings.Contains(text, "\x1b") {
		text += "\x1b[0m"
	}
	return text
}

// Colored is Printable but for colours, which stay.
func Colored(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(Printable(before))
		if !found {
			return b.String()
		}
		numbers := strings.IndexFunc(after, func(r rune) bool { return (r < '0' || r > '9') && r != ';' })
		if numbers >= 0 && after[numbers] == 'm' && visible(after[:numbers]) {
			b.WriteString("\x1b[" + after[:numbers+1])
			text = after[numbers+1:]
			continue
		}
		b.WriteString(`\u001b[`)
		text = after
	}
}

// visible tells that text of these attributes can be seen: 8 conceals it.
func visible(attributes string) bool {
	for one := range strings.SplitSeq(attributes, ";") {
		if strings.TrimLeft(one, "0") == "8" {
			return false
		}
	}
	return true
}
