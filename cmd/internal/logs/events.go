package logs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/wording"
)

// Events prints what happened to the instances of an app on this host, in the order of time.
type Events struct {
	Lookup   apps.Lookup
	Facts    apps.Facts
	Instance *registry.Instance // nil: all
	Follow   bool
	JSON     bool // the lines as they stand in the files
	Out      io.Writer

	read map[string]int64 // bytes of whole lines, by the path of the file
}

// Print prints the events, with Follow until the run is over.
func (e *Events) Print(ctx context.Context) error {
	e.read = map[string]int64{}
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	for {
		facts, err := e.Lookup.OnHost(ctx, e.Facts.ID)
		if err != nil {
			return err
		}
		instance := ""
		if e.Instance != nil {
			instance = e.Instance.String()
		}
		ended := facts.Local == nil || over(facts, instance) // before the look: what was there at the end is printed
		if facts.Local != nil {
			e.Facts = facts
		}
		if err := e.print(); err != nil {
			return err
		}
		if ended || !e.Follow {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	if len(e.read) == 0 {
		fmt.Fprintf(e.Lookup.Warn, "no events of %s on this host: its instances may run elsewhere: muster status %s\n",
			e.Facts.ID, e.Facts.ID)
	}
	return nil
}

// event is a line and what it says.
type event struct {
	journal.Line
	text []byte
}

// print prints the events that have come since the last time.
func (e *Events) print() error {
	reader := Reader{Lookup: e.Lookup, Facts: e.Facts}
	names := reader.names()
	if e.Instance != nil {
		names = []string{e.Instance.String()}
	}
	var all []event
	for _, name := range names {
		dir, err := reader.dir(name)
		if err != nil {
			return err
		}
		found, err := e.more(filepath.Join(dir, journal.File))
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b event) int { return a.At.Compare(b.At) })
	for _, one := range all {
		text := string(one.text)
		if !e.JSON {
			text = wording.Wrap(one.String(), console.Width(e.Out), len("2006-01-02 15:04:05  "))
		}
		if _, err := fmt.Fprintln(e.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// more reads the whole lines that have come to a file. A line that is no event is left out.
func (e *Events) more(path string) ([]event, error) {
	file, err := files.OpenPlain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const most = 64 << 20
	text, err := io.ReadAll(io.NewSectionReader(file, e.read[path], most))
	if err != nil {
		return nil, err
	}
	var found []event
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		one := event{text: bytes.TrimRight(line, "\n")}
		if json.Unmarshal(line, &one.Line) == nil {
			found = append(found, one)
		}
	}
	e.read[path] += int64(len(whole))
	return found, nil
}

// String is an event in a line for people: time, instance, what happened, generation and attempt, why.
func (e event) String() string {
	what := e.Event
	if e.From != e.To {
		what = fmt.Sprintf("%s → %s", cmp.Or(e.From, "start"), e.To)
	}
	text := fmt.Sprintf("%s  %-12s  %-24s", wording.Clock(e.At), e.Instance, what)
	if e.Generation > 0 {
		text += fmt.Sprintf("  gen %d, attempt %d", e.Generation, e.Attempt)
	}
	if e.Cause != "" {
		text += "  " + e.Cause
	}
	return strings.TrimRight(wording.Line(text), " ")
}
