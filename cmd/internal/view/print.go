package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/troubles"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// Print writes the app for people.
func (v *App) Print(out io.Writer) error {
	title := v.App // a name of letters, digits and dashes; the package's own is not
	if v.Name != "" {
		title += " (" + wording.Line(v.Name) + ")"
	}
	var b strings.Builder
	b.WriteString(console.Color(out, title+": "+v.Phase, len(title), v.Phase) + "\n")
	width := console.Width(out)
	for _, line := range v.lines() {
		text := wording.Wrap(fmt.Sprintf("  %-11s %s", line[0], wording.Line(line[1])), width, len("  checkpoints "))
		text = console.Color(out, text, 0, line[0])
		if line[0] == "verdict" || line[0] == "outcome" {
			outcome := line[1][:max(0, strings.IndexAny(line[1]+" ", " :;"))]
			text = console.Color(out, text, len("  checkpoints"), outcome)
		}
		b.WriteString(text + "\n")
	}
	if err := console.Print(out, b.String()); err != nil || len(v.Instances) == 0 {
		return err
	}
	if len(v.Instances) > manyInstances {
		fmt.Fprintf(out, "  %-11s %s\n", "phases", apps.Counts(v.Instances))
	}
	fmt.Fprintln(out)
	head, cells := Filled("INSTANCE ROLE PHASE HOST GEN ATTEMPT PROGRESS STEP EXIT SINCE USE CAUSE",
		instanceCells(v.Instances, v.local(), time.Now()))
	return console.Table(out, head, cells)
}

// manyInstances is how many rows are seen at a glance; of more the phases are counted.
const manyInstances = 8

// pages are what people open while the run lasts: TensorBoard's URL.
func (v *App) pages() [][2]string {
	var lines [][2]string
	if v.Verdict != nil {
		return nil
	}
	for _, row := range v.Instances {
		for _, name := range slices.Sorted(maps.Keys(row.Exports)) {
			url := row.Instance + ": " + row.Exports[name]
			switch {
			case row.Role == "service":
				url = strings.TrimSuffix(url+", in Consul "+row.DNSName, ", in Consul ")
				lines = append(lines, [2]string{"service", url})
			case isBoard(name):
				lines = append(lines, [2]string{"board", url})
			}
		}
	}
	return lines
}

// lines are what is said of the run as a whole, word and text.
func (v *App) lines() [][2]string {
	var lines [][2]string
	add := func(word, text string) {
		if text != "" {
			lines = append(lines, [2]string{word, text})
		}
	}
	if v.Verdict != nil {
		add("verdict", exit.VerdictText(*v.Verdict))
		if x := v.Verdict.Exit; x != nil && x.LastOutput != "" {
			for line := range strings.SplitSeq(x.LastOutput, "\n") {
				add("last output", line)
			}
			if said := troubles.Heard(x.LastOutput); said != "" {
				add("help", "muster help errors "+said)
			}
		}
		add("advice", v.Verdict.Advice)
	} else if v.Outcome != nil {
		add("outcome", *v.Outcome+"; it resumes when it is launched again")
	}
	add("run", v.Run)
	if v.Protocol != nil {
		add("protocol", v.Protocol.String())
	}
	if len(v.Builds) > 1 {
		for _, b := range v.Builds {
			add("build", b.String())
		}
	}
	if v.Generation > 0 {
		add("generation", strconv.Itoa(v.Generation))
	}
	if reported, all := v.workers(); len(reported) > 0 && all > 1 {
		add("progress", fmt.Sprintf("%.0f%% (mean of %d of %d workers)", *v.Progress*100, len(reported), all))
	}
	if v.Verdict == nil {
		if d := v.Directive; d != nil {
			add("directive", strings.TrimSuffix(string(d.Act)+": "+d.Why, ": "))
			add("conductor", cmp.Or(OrEmpty(v.Conductor), "nobody"))
			if d.FromBeginning != "" {
				add("checkpoints", "from the beginning, for the ranks have no step in common: "+d.FromBeginning)
			}
		}
		add("missing", strings.Join(v.Missing, ", "))
	}
	for _, row := range v.Instances {
		for _, w := range row.Waits {
			add("waiting", waitText(w))
		}
	}
	if v.AwaySince != nil {
		add("registry", v.Registry+" (registry unreachable since "+wording.Clock(*v.AwaySince)+"; "+v.fate()+")")
	} else {
		add("registry", v.Registry)
	}
	for _, row := range v.Instances {
		if len(row.Unenforced) > 0 {
			add("unenforced", row.Instance+": "+strings.Join(row.Unenforced, ", "))
		}
	}
	for _, row := range v.Instances {
		for _, w := range row.Warnings {
			add("warning", row.Instance+": "+w.Text)
		}
	}
	lines = append(lines, v.pages()...)
	add("work", v.WorkDir)
	add("logs", v.LogDir)
	return lines
}

// isBoard tells of an export that it is a board beside a process that trains: worker.board.
func isBoard(export string) bool {
	_, name, _ := strings.Cut(export, ".")
	return strings.Contains(strings.ToLower(name), "board")
}

// Filled leaves out the columns in which no row has anything.
func Filled(head string, rows [][]string) (string, [][]string) {
	var names []string
	kept := make([][]string, len(rows))
	for i, name := range strings.Fields(head) {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
			continue
		}
		names = append(names, name)
		for n, row := range rows {
			kept[n] = append(kept[n], row[i])
		}
	}
	return strings.Join(names, " "), kept
}

// waitText is for whom the conductor waits, and how long it will.
func waitText(w status.Wait) string {
	text := fmt.Sprintf("%s since %s, given up at %s", w.Instance, wording.Clock(w.Since), wording.Clock(w.Until))
	if w.Mass {
		text += ": more than half of the gang is away"
	}
	return text
}

// fate is what becomes of processes whose agents hear nothing of the registry.
func (v *App) fate() string {
	var fenced []string
	for _, row := range v.Instances {
		if row.Outage != nil && row.Outage.Fenced {
			fenced = append(fenced, row.Instance)
		}
	}
	if len(fenced) > 0 {
		return strings.Join(fenced, ", ") + " cut off and stopped"
	}
	return "processes go on"
}

// local tells that all is on this host: the column of hosts would say one thing in each row.
func (v *App) local() bool {
	far := func(in status.Instance) bool { return in.Host != "127.0.0.1" && in.Host != "" }
	return strings.HasPrefix(v.Registry, "unix:") && !slices.ContainsFunc(v.Instances, far)
}

func instanceCells(rows []status.Instance, local bool, now time.Time) [][]string {
	var cells [][]string
	for _, row := range rows {
		progress, step, exit, use, cause := "", "", "", "", row.Cause
		if cause == "" && row.LastEnd != "" {
			cause = fmt.Sprintf("attempt %d %s", row.Attempt-1, row.LastEnd)
		}
		if row.Progress != nil {
			progress = fmt.Sprintf("%.0f%%", *row.Progress*100)
		}
		if row.CheckpointStep != nil {
			step = strconv.FormatInt(*row.CheckpointStep, 10)
		}
		if row.Exit != nil {
			exit = strconv.Itoa(*row.Exit)
		}
		if row.Use != nil {
			use = row.Use.String()
		}
		role := row.Role
		if role == row.Component { // the name says it
			role = ""
		}
		host := row.Host
		if local {
			host = ""
		}
		cells = append(cells, []string{
			row.Instance, role, row.Phase, host, number(row.Generation), number(row.Attempt), progress, step,
			exit, Moment(row.Since, now), use, cause,
		})
	}
	return cells
}

// Moment is the time of day, of another day than today its date.
func Moment(at, now time.Time) string {
	day, clock, _ := strings.Cut(wording.Clock(at), " ")
	if today, _, _ := strings.Cut(wording.Clock(now), " "); today == day {
		return clock
	}
	return day
}

// number leaves what has not begun empty.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// OrEmpty is the text, or nothing.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
