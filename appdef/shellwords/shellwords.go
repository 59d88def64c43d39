package shellwords

import (
	"slices"
	"strings"
)

// Text is a text with which a shell runs exactly these words, and which has no placeholder.
func Text(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Word(w)
		if i == 0 && quoted[i] == w && (strings.Contains(w, "=") || slices.Contains(reserved[:], w)) {
			quoted[i] = "'" + w + "'" // else it is an assignment, or a word of the shell's own
		}
	}
	return strings.Join(quoted, " ")
}

// reserved are the words that a shell reads as grammar at the start of a command.
var reserved = [...]string{
	"!", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
	"time", "until", "while",
}

const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:,+@%="

// Word is one word in the syntax of a shell. Inside the quotes, two quotes without meaning to the shell split what
// would be a placeholder of a definition.
func Word(w string) string {
	if w != "" && strings.Trim(w, plainBytes) == "" {
		return w
	}
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(w) {
		c := w[i]
		if i > 0 && (c == '{' && (w[i-1] == '$' || w[i-1] == '{') || c == '$' && w[i-1] == '{') {
			b.WriteString("''")
		}
		if c == '\'' {
			b.WriteString(`'\''`)
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte('\'')
	return b.String()
}

// Words are the words of a text that Text has made; false: it has not.
func Words(text string) ([]string, bool) {
	var words []string
	var w strings.Builder
	quoted := false
	flush := func() { words = append(words, w.String()); w.Reset() }
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\'':
			quoted = false
		case quoted:
			w.WriteByte(c)
		case c == '\'':
			quoted = true
		case c == '\\' && i+1 < len(text):
			i++
			w.WriteByte(text[i])
		case c == ' ':
			flush()
		default:
			w.WriteByte(c)
		}
	}
	flush()
	return words, !quoted && Text(words) == text
}
