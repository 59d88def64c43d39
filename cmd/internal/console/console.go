package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

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

// Table prints rows in columns.
func Table(out io.Writer, head string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Fields(head), "\t"))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = cmp.Or(wording.Line(cell), "-")
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
