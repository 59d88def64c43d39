package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/tail"
	"github.com/muster-agent/muster/shim/wording"
)

// The values of --output.
const (
	OutputAuto  = "auto"
	outputTable = "table"
	OutputLines = "lines"
	// OutputEvents is lines without what the processes write: of a run in the background that would grow without end.
	OutputEvents = "events"
)

// Outputs are the values of --output.
func Outputs() []string { return []string{OutputAuto, outputTable, OutputLines, OutputEvents} }

// tabular tells whether the run is shown as a table; auto means on a terminal.
func (r *runner) tabular() bool {
	if r.flags.Output != OutputAuto {
		return r.flags.Output == outputTable
	}
	return console.Terminal(r.streams.Err) != nil
}

// logsHint names the command that shows what a table has no room for.
func (r *runner) logsHint() string {
	hint := "logs: muster logs " + r.appID
	if r.flags.State.Dir != "" {
		hint += " --state-dir " + r.flags.State.Dir
	}
	return hint
}

// display shows the run while it lives: a table or prefixed lines. The function that it returns ends
// it, after everything written so far was shown.
func (r *runner) display(ctx context.Context) (stop func()) {
	// The display outlives the run, to show its last lines: stop ends it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	if r.tabular() {
		wg.Go(func() { r.table(ctx) })
	}
	var mu sync.Mutex
	for _, c := range r.agents {
		r.lines(ctx, &wg, &mu, c.instance.String())
	}
	return func() { cancel(); wg.Wait() }
}

// lines follows an instance's output and its transitions. Beside a table it shows what the process writes to stdout,
// where that is no terminal.
func (r *runner) lines(ctx context.Context, wg *sync.WaitGroup, mu *sync.Mutex, instance string) {
	table := r.tabular()
	dir := filepath.Join(r.logDir, instance)
	to := func(stream io.Writer) func(string) {
		return func(line string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(console.Raw(stream), "%-12s | %s\n", instance, wording.Program(line))
		}
	}
	say := to(r.streams.Err)
	followed := map[string]func(string){}
	if !table {
		followed[journal.File] = func(line string) {
			if text := transitionLine(line); text != "" {
				say(text)
			}
		}
	}
	if r.flags.Output != OutputEvents && (!table || !r.flags.JSON && console.Terminal(r.streams.Out) == nil) {
		followed["stdout.log"] = to(r.stdout())
	}
	if r.flags.Output != OutputEvents && !table {
		followed["stderr.log"] = func(line string) {
			if !ofProgress(line) {
				say(line)
			}
		}
	}
	for name, show := range followed {
		path := filepath.Join(dir, name)
		from := files.PlainSize(path) // what an earlier run wrote has been shown then
		wg.Go(func() {
			w := &tail.Lines{Show: show}
			if err := status.Follow(ctx, path, from, true, w); err != nil && ctx.Err() == nil {
				say("muster: " + err.Error())
			}
			w.Flush()
		})
	}
}

// stdout is where the processes' stdout is shown: on this command's own, but where that is for the result as JSON.
func (r *runner) stdout() io.Writer {
	if r.flags.JSON {
		return r.streams.Err
	}
	return r.streams.Out
}

// transitionLine says in words what matters of a transition; "" for the others.
func transitionLine(line string) string {
	var m journal.Line
	if json.Unmarshal([]byte(line), &m) != nil {
		return ""
	}
	switch m.Event {
	case journal.EventWarning:
		return "muster: warning: " + m.Cause
	case journal.EventMended, journal.EventLeaving, journal.EventResumed, journal.EventSaved,
		journal.EventKept:
		return "muster: " + m.Cause
	case journal.EventCheckpoint:
		return ""
	}
	switch m.To {
	case machine.Running:
		return fmt.Sprintf("muster: running (attempt %d, generation %d)", m.Attempt, m.Generation)
	case machine.Holding, machine.Backoff, machine.Stopping, machine.Fenced, machine.Finishing, machine.Standby,
		machine.Superseded:
		if m.Cause != "" {
			return fmt.Sprintf("muster: %s: %s", m.To, m.Cause)
		}
		return "muster: " + string(m.To)
	case machine.Installed: // of one whose process has ended by itself, before or by the same failure
		if m.Event == string(machine.Directed) && (m.From == machine.Finishing || m.From == machine.Backoff) &&
			m.Cause != "" {
			return "muster: " + m.Cause
		}
	case machine.Starting, machine.Claiming, machine.Staging, machine.Waiting, machine.Leaving, machine.Done:
	}
	return ""
}

// tablePoll is how often the table is drawn.
const tablePoll = 500 * time.Millisecond

func (r *runner) table(ctx context.Context) {
	tick := time.NewTicker(tablePoll)
	defer tick.Stop()
	for last := false; ; {
		rows := r.rows(ctx)
		if _, height := r.window(); len(rows) > height-2 {
			r.draw(append([]string{apps.Counts(rows)}, tableText(apps.TroubleFirst(rows))...))
		} else {
			r.draw(tableText(rows))
		}
		if last {
			return
		}
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
	}
}

// window is the width and height of the terminal that the table is on.
func (r *runner) window() (width, height int) {
	if f := console.Terminal(r.streams.Err); f != nil {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil {
			return w, h
		}
	}
	return cmp.Or(console.Width(r.streams.Err), 120), 50 // of what is no terminal
}

// draw puts the table in the place of the last one, cut to the terminal.
func (r *runner) draw(lines []string) {
	width, height := r.window()
	if over := len(lines) - (height - 1); over > 0 && height > 2 {
		lines = append(lines[:height-2:height-2], fmt.Sprintf("… and %d more: muster ps %s", over+1, r.appID))
	}
	r.screen.Lock()
	defer r.screen.Unlock()
	var b strings.Builder
	if r.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", r.drawn)
	}
	for _, l := range lines {
		text := cut(wording.Line(l), width)
		for i, word := range strings.Fields(text) {
			if i < 2 { // an instance and its phase, or warning: INSTANCE:
				text = console.Color(r.streams.Err, text, 0, strings.TrimSuffix(word, ":"))
			}
		}
		b.WriteString("\x1b[2K" + text + "\n")
	}
	r.drawn = len(lines)
	_, _ = io.WriteString(console.Raw(r.streams.Err), b.String()) // the terminal is gone
}

// rows asks every agent; one that does not answer is shown as it was last.
func (r *runner) rows(ctx context.Context) []status.Instance {
	rows := make([]status.Instance, len(r.agents))
	var wg sync.WaitGroup
	for i, c := range r.agents {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			client := status.Dial(r.state.Socket(r.appID, c.instance.String()))
			defer client.Close()
			st, err := client.State(ctx)
			if err == nil {
				rows[i] = st.Instance
				return
			}
			rows[i] = status.Instance{Identity: status.IdentityOf(c.instance), Phase: string(machine.Starting)}
			// then it is starting
			_ = status.ReadJSON(filepath.Join(r.logDir, c.instance.String(), "last.json"), &rows[i])
		})
	}
	wg.Wait()
	return rows
}

func tableText(rows []status.Instance) []string {
	lines := []string{fmt.Sprintf("%-16s %-10s %-4s %-8s %-8s %-8s %-8s %s", "INSTANCE", "PHASE", "GEN", "RESTARTS",
		"FAILURES", "PROGRESS", "STEP", "")}
	for _, in := range rows {
		progress, step := "-", "-"
		if in.Progress != nil {
			progress = fmt.Sprintf("%.0f %%", *in.Progress*100)
		}
		if in.CheckpointStep != nil {
			step = fmt.Sprint(*in.CheckpointStep)
		}
		lines = append(lines, fmt.Sprintf("%-16s %-10s %-4d %-8d %-8d %-8s %-8s %s", in.Instance, in.Phase,
			in.Generation, in.Restarts, in.Failures, progress, step, in.Cause))
	}
	for _, in := range rows {
		for _, w := range in.Warnings {
			lines = append(lines, "warning: "+in.Instance+": "+w.Text)
		}
	}
	return lines
}

// cut shortens a line to the terminal's width, so that the cursor moves up by whole lines.
func cut(line string, width int) string {
	runes := []rune(line)
	if width > 0 && len(runes) > width {
		return string(runes[:width])
	}
	return line
}
