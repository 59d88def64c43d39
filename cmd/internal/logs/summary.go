package logs

import (
	"fmt"
	"io"
	"time"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/journal/timeline"
	"github.com/muster-agent/muster/shim/wording"
)

// summarize prints which generations there were, and where the time of all instances went.
func summarize(out io.Writer, asJSON bool, t timeline.Timeline) error {
	if asJSON {
		return console.PrintJSON(out, t)
	}
	for _, g := range t.Generations {
		text := fmt.Sprintf("%s  generation %d", wording.Clock(g.At), g.Number)
		if g.Why != "" {
			text += ": " + g.Why
		}
		fmt.Fprintln(out, wording.Wrap(wording.Line(text), console.Width(out), len("2006-01-02 15:04:05  ")))
	}
	if t.Ratio == nil {
		return nil
	}
	fmt.Fprintln(out)
	all := 0.0
	for _, k := range timeline.Kinds() {
		all += t.Spent[k]
	}
	var rows [][]string
	for _, k := range timeline.Kinds() {
		took := time.Duration(t.Spent[k] * float64(time.Second)).Round(time.Second / 10)
		rows = append(rows, []string{k, took.String(), fmt.Sprintf("%.1f %%", 100*t.Spent[k]/all)})
	}
	return console.Table(out, "TIME SPENT SHARE", rows)
}
