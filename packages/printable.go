package packages

import (
	"strconv"
	"strings"
	"unicode"
)

// Printable is a text of a package on one line of a terminal: quoted where it could steer the terminal.
func Printable(text string) string {
	text = strings.ReplaceAll(text, "\t", " ") // as minisign separates the words of its comment
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	return strconv.Quote(text)
}
