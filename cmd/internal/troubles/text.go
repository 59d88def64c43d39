package troubles

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wording"
)

const width = 80

// Help is what `muster help errors` prints for these words.
func Help(words []string) (string, error) {
	text := strings.Join(words, " ")
	found := find(text)
	if len(found) == 0 {
		return "", exit.With(1, fmt.Errorf("help errors: no row has all the words %q; give fewer of them, or a class "+
			"or an exit code; muster help errors alone prints all rows", text))
	}
	var b strings.Builder
	for i, g := range found {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.ToUpper(g.title) + "\n")
		for _, r := range g.rows {
			b.WriteString("\n")
			for _, s := range r.heading() {
				b.WriteString(wording.Wrap("  "+s, width, len("    ")) + "\n")
			}
			b.WriteString(wording.Wrap("    cause: "+r.because, width, len("    cause: ")) + "\n")
			b.WriteString(wording.Wrap("    fix:   "+r.fix, width, len("    fix:   ")) + "\n")
		}
	}
	return b.String(), nil
}

// heading are the symptoms of a row, the last of them with its class and its exit codes.
func (r row) heading() []string {
	lines := r.symptoms()
	if len(lines) == 0 {
		return []string{r.ending()}
	}
	if end := r.ending(); end != "" {
		lines[len(lines)-1] += "  (" + end + ")"
	}
	return lines
}

// ending says the class and the exit codes of a row.
func (r row) ending() string {
	var parts []string
	if r.class != "" {
		parts = append(parts, "class "+string(r.class))
	}
	var codes []string
	for _, c := range r.codes {
		codes = append(codes, strconv.Itoa(c))
	}
	if len(codes) > 0 {
		parts = append(parts, "exit code "+strings.Join(codes, ", "))
	}
	return strings.Join(parts, ", ")
}
