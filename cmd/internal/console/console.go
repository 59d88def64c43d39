package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/wording"
)

// Streams are where a command reads and writes: results to out, everything else to err.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// PrintJSON prints one value for machines, indented for people who look at it.
func PrintJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(value); err != nil {
		return exit.With(exit.Internal, fmt.Errorf("print: %w", err))
	}
	return nil
}

// Table prints rows in columns that fit the width of out: the last one, which has the text, is broken between its
// words.
func Table(out io.Writer, head string, rows [][]string) error {
	table := [][]string{strings.Fields(head)}
	for _, row := range rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = cmp.Or(wording.Line(cell), "-")
		}
		table = append(table, line)
	}
	last := len(table[0]) - 1
	widths := make([]int, last)
	for _, line := range table {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
		}
	}
	width := Width(out)
	told := slices.IndexFunc(table[0], func(name string) bool { return slices.Contains(tellingColumns, name) })
	var b strings.Builder
	for _, line := range table {
		var row strings.Builder
		from := 0
		for i := range widths {
			if i == told {
				from = row.Len()
			}
			row.WriteString(line[i] + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(line[i])+2))
		}
		text := wording.Wrap(row.String()+line[last], width, utf8.RuneCountInString(row.String()))
		if told == last {
			from = row.Len()
		}
		if told >= 0 {
			text = Color(out, text, from, line[told])
		}
		b.WriteString(text + "\n")
	}
	return Print(out, b.String())
}

// tellingColumns are the columns whose word has a colour: the first of them that a table has.
var tellingColumns = []string{"OUTCOME", "PHASE", "STATE"}
