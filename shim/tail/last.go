package tail

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/muster-agent/muster/shim/progress"
	"github.com/muster-agent/muster/shim/wording"
)

// Last are the last lines of a text that have words, as one text without what steers a terminal: at most so many lines
// and bytes. Of a line that a program wrote over again (with \r) the last state counts. The last line is there in any
// case, its beginning if it is too long.
func Last(text string, lines, most int) string {
	var kept []string
	for _, line := range slices.Backward(strings.Split(text, "\n")) {
		line = strings.TrimRight(line, "\r\t ")
		line = wording.Printable(line[strings.LastIndexByte(line, '\r')+1:])
		_, reported := progress.Reported(line)
		if line = strings.TrimRight(line, " "); strings.TrimSpace(line) == "" || reported {
			continue
		}
		if len(line) > most {
			if len(kept) == 0 {
				kept = append(kept, short(line, most))
			}
			break
		}
		most -= len(line) + 1
		if kept = append(kept, line); len(kept) == lines {
			break
		}
	}
	slices.Reverse(kept)
	return strings.Join(kept, "\n")
}

// short is the beginning of a text in so many bytes, marked.
func short(text string, most int) string {
	const mark = "…"
	end := max(0, most-len(mark))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
