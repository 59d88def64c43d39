package render

import (
	"fmt"
	"strings"

	"github.com/muster-agent/muster/shim/launcher"
)

// Header is what a person reads first, a line each, without the mark of a comment: what this is, how it is started
// and what it does not say.
func (w *Writer) Header(title string, how ...string) []string {
	var parts []string
	for _, g := range w.Groups {
		parts = append(parts, fmt.Sprintf("%s ×%d", g.Name, g.Count))
	}
	if len(parts) == 0 {
		parts = []string{"no instances"}
	}
	lines := []string{
		title,
		"App " + w.Options.AppID + ", run " + w.Options.Run + ": " + strings.Join(parts, ", ") + ".",
		"Started again under the same run it goes on where it was interrupted, or ends with the run's verdict at " +
			"once; render",
		"it again for a new run.",
		"",
	}
	lines = append(lines, how...)
	if len(w.unsupported) > 0 {
		lines = append(lines, "", "Unsupported:")
		for _, l := range w.unsupported {
			lines = append(lines, "- "+OneLine(l))
		}
	}
	return lines
}

// Comment puts the mark that all formats but JSON have before each line; a line without text is the mark alone.
func Comment(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimRight("# "+OneLine(line), " ") + "\n")
	}
	return b.String()
}

// OneLine keeps a value from ending the comment that tells of it.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
}

// CodeLines tell what exit codes mean to a launcher.
func CodeLines() []string {
	lines := []string{"How an agent ends, by the class of the verdict and never by the program's own number:"}
	for _, c := range launcher.Codes() {
		lines = append(lines, fmt.Sprintf("  %3d %-9s %s", c.Code, c.Answer, c.Why))
	}
	return lines
}
