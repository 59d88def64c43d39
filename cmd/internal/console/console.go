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
	var b strings.Builder
	for _, line := range table {
		var row strings.Builder
		begins := make([]int, last+1) // of each cell
		for i := range widths {
			begins[i] = row.Len()
			row.WriteString(line[i] + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(line[i])+2))
		}
		begins[last] = row.Len()
		text := wording.Wrap(row.String()+line[last], width, utf8.RuneCountInString(row.String()))
		for i, name := range slices.Backward(table[0]) { // a colour moves what is behind it
			if slices.Contains(tellingColumns, name) {
				text = Color(out, text, begins[i], line[i])
			}
		}
		b.WriteString(text + "\n")
	}
	return Print(out, b.String())
}

// tellingColumns are the columns whose word has a colour.
var tellingColumns = []string{"OUTCOME", "PHASE", "STATE"}
