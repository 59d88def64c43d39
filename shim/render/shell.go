package render

import (
	"regexp"
	"strings"
)

// PlainWord is what no shell, and neither Hadoop nor systemd, reads otherwise.
var PlainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@+-]+$`)

// ShellWord quotes a word for sh and bash.
func ShellWord(word string) string {
	if PlainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ShellLines is a command with each option and its value on a line, indented. The words at the places in filled stand
// as they are: the shell is to fill them in.
func ShellLines(indent string, words []string, filled map[int]string) string {
	var b strings.Builder
	for i, word := range words {
		switch {
		case i == 0:
		case strings.HasPrefix(word, "-"):
			b.WriteString(" \\\n" + indent)
		default:
			b.WriteByte(' ')
		}
		if text, ok := filled[i]; ok {
			b.WriteString(text)
			continue
		}
		b.WriteString(ShellWord(word))
	}
	return b.String()
}
