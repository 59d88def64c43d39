package sheet

import (
	"fmt"
	"strings"
	"time"
)

// sheet is text in rows: a label, a value and its source.
type sheet struct {
	b     strings.Builder
	label string // of the row before
	tail  []string
}

// The columns of a sheet: a label has labelWidth, an origin begins at originColumn where the text leaves room.
const (
	labelWidth   = 12
	originColumn = 76
	listWidth    = 100
)

// head begins a section.
func (s *sheet) head(text string) {
	if s.b.Len() > 0 {
		s.b.WriteByte('\n')
	}
	s.b.WriteString(text + "\n")
	s.label = ""
}

// row is one fact. A label equal to the previous one is not repeated; a row without a text is left out.
func (s *sheet) row(label, text, origin string) {
	if text == "" {
		return
	}
	shown := label
	if label == s.label {
		shown = ""
	} else if label != "" {
		s.label = label
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		line = fmt.Sprintf("  %-*s%s", labelWidth, shown, line)
		shown = ""
		if i == len(lines)-1 && origin != "" {
			line = fmt.Sprintf("%-*s  (%s)", originColumn, line, origin)
		}
		s.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// list is one fact of many names, over as many lines as needed.
func (s *sheet) list(label string, names []string, origin string) {
	line := ""
	for i, name := range names {
		if line != "" && len(line)+1+len(name) > listWidth {
			s.row(label, line, "")
			line = ""
		}
		line = strings.TrimPrefix(line+" "+name, " ")
		if i == len(names)-1 {
			s.row(label, line, origin)
		}
	}
}

func (s *sheet) String() string {
	text := s.b.String()
	if len(s.tail) > 0 {
		text += "\n" + strings.Join(s.tail, "\n") + "\n"
	}
	return text
}

// span prints seconds as the definition writes durations: 90s, 5m, 1h30m.
func span(seconds float64) string {
	text := time.Duration(seconds * float64(time.Second)).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// commandText is a command as a person would type it; of a shell command only its text.
func commandText(argv []string) string {
	if len(argv) == 3 && argv[1] == "-c" {
		return argv[2]
	}
	return strings.Join(argv, " ")
}

// article puts a or an before the name of a dialect: an hbox.
func article(dialect string) string {
	if dialect == "hbox" {
		return "an " + dialect
	}
	return "a " + dialect
}
