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
	"github.com/muster-agent/muster/shim/journal/timeline"
	"github.com/muster-agent/muster/shim/wording"
)

// Events prints what happened to the instances of an app, in the order of time.
type Events struct {
	Lookup  apps.Lookup
	Target  apps.Target
	Follow  bool
	JSON    bool // the lines as they stand in the files
	Summary bool // what they add up to
	Out     io.Writer

	silent string           // agents that did not answer, as they were named last
	read   map[string]int64 // bytes of whole lines, by instance
	where  map[string]string
}

// Print prints the events, with Follow until the run is over.
func (e *Events) Print(ctx context.Context) error {
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	var all []journal.Line
	for {
		found, ended, err := e.look(ctx)
		if err != nil {
			return err
		}
		if !e.Summary {
			err = e.print(found)
		}
		for _, one := range found {
			all = append(all, one.Line)
		}
		if err != nil || ended || !e.Follow || e.Summary {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	if len(e.read) == 0 {
		fmt.Fprintf(e.Lookup.Warn, "no events of %s here: its instances may have run elsewhere: muster status %s\n",
			e.Target.App, e.Target.App)
	}
	if e.Summary {
		return summarize(e.Out, e.JSON, timeline.Of(all, time.Now()))
	}
	return nil
}

// Lines are the events so far.
func (e *Events) Lines(ctx context.Context) ([]journal.Line, error) {
	found, _, err := e.look(ctx)
	lines := make([]journal.Line, len(found))
	for i, one := range found {
		lines[i] = one.Line
	}
	return lines, err
}

// look reads the events that have come since the last time, in the order of time, and tells whether the run is over.
func (e *Events) look(ctx context.Context) (found []event, ended bool, err error) {
	if e.read == nil {
		e.read, e.where = map[string]int64{}, map[string]string{}
	}
	facts, err := factsOf(ctx, e.Lookup, e.Target)
	switch {
	case err != nil && (!errors.Is(err, registry.ErrNoApp) || len(e.read) == 0):
		return nil, false, err
	case err != nil: // it was forgotten meanwhile
		return nil, true, nil
	}
	reader := Reader{Lookup: e.Lookup, Facts: facts}
	agents, silent := facts.Elsewhere()
	reader.Elsewhere = agents
	defer func() {
		for _, agent := range agents {
			agent.Close()
		}
	}()
	names := reader.names()
	instance := ""
	if e.Target.Instance != nil {
		instance = e.Target.Instance.String()
		names = []string{instance}
	} else if text := wording.First(silent, mostSilent); len(silent) > 0 && text != e.silent {
		e.silent = text
		fmt.Fprintf(e.Lookup.Warn, "%s: no answer from %s\n", e.Target.App, text)
	}
	// before the look: what was there at the end is printed
	ended = facts.Past != nil || over(facts, instance) && len(agents) == 0
	for _, name := range names {
		more, err := e.more(ctx, reader, name)
		if err != nil {
			return nil, false, err
		}
		found = append(found, more...)
	}
	slices.SortStableFunc(found, func(a, b event) int { return a.At.Compare(b.At) })
	return found, ended, nil
}

// event is a line and what it says.
type event struct {
	journal.Line
	text []byte
}

// print prints events.
func (e *Events) print(all []event) error {
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

// more reads the whole lines that have come to an instance's file, here or from its agent on another host. A line that
// is no event is left out.
func (e *Events) more(ctx context.Context, reader Reader, instance string) ([]event, error) {
	var text []byte
	where := ""
	if agent := reader.Elsewhere[instance]; agent != nil {
		where = reader.member(instance).Inc
		e.from(instance, where)
		var part bounded
		asking, cancel := context.WithTimeout(ctx, apps.Patience)
		defer cancel()
		if err := agent.Logs(asking, journal.Log, e.read[instance], false, &part); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", e.Target.App, instance, err)
		}
		text = part.text.Bytes()
	} else {
		dir, err := reader.dir(instance)
		if err != nil {
			return nil, err
		}
		where = filepath.Join(dir, journal.File)
		e.from(instance, where)
		text, err = readFrom(where, e.read[instance])
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	var found []event
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		one := event{text: bytes.TrimRight(line, "\n")}
		if json.Unmarshal(line, &one.Line) == nil {
			found = append(found, one)
		}
	}
	e.read[instance] += int64(len(whole))
	return found, nil
}

// from begins anew with an instance whose events are in another file now.
func (e *Events) from(instance, where string) {
	if e.where[instance] != where {
		e.where[instance], e.read[instance] = where, 0
	}
}

// mostEvents is how many bytes of events are read at once.
const mostEvents = 64 << 20

// bounded takes so many bytes and no more: an agent is anybody who can write its record.
type bounded struct{ text bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > mostEvents {
		return 0, fmt.Errorf("more than %d bytes of events at once", mostEvents)
	}
	return b.text.Write(p)
}

func readFrom(path string, offset int64) ([]byte, error) {
	file, err := files.OpenPlain(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, offset, mostEvents))
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
