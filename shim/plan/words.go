package plan

import (
	"errors"
	"strings"
)

var errOpenQuote = errors.New("a quote is not closed")

// words splits text as a POSIX shell does: blanks separate, '…' is literal, "…" keeps blanks, a
// backslash takes the next character as it is (inside "…" only before \ " $ and a backquote). It
// expands nothing.
func words(text string) ([]string, error) {
	var (
		out   []string
		word  strings.Builder
		begun bool
		quote byte
	)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == '\'' && c != '\'':
			word.WriteByte(c)
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && i+1 < len(text) && (quote == 0 || strings.IndexByte("\\\"$`", text[i+1]) >= 0):
			i++
			word.WriteByte(text[i])
			begun = true
		case quote == '"':
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if begun {
				out = append(out, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, errOpenQuote
	}
	if begun {
		out = append(out, word.String())
	}
	return out, nil
}
