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
	"sync"
	"sync/atomic"
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

	unreachable []string         // instances whose agents did not answer the last look, each with its host
	told        string           // which of them users were told of
	read        map[string]int64 // bytes of whole lines, by instance
	where       map[string]string
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

// Lines are the events so far, and the instances whose agents did not answer, each with its host.
func (e *Events) Lines(ctx context.Context) (lines []journal.Line, unreachable []string, err error) {
	found, _, err := e.look(ctx)
	lines = make([]journal.Line, len(found))
	for i, one := range found {
		lines[i] = one.Line
	}
	return lines, e.unreachable, err
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
	}
	// before the look: what was there at the end is printed
	ended = facts.Past != nil || over(facts, instance) && len(agents) == 0
	found, gone, err := e.gather(ctx, reader, names)
	if err != nil {
		return nil, false, err
	}
	if e.unreachable = append(silent, gone...); instance == "" {
		e.tell()
	}
	slices.SortStableFunc(found, func(a, b event) int { return a.At.Compare(b.At) })
	return found, ended, nil
}

// tell names the agents that did not answer, once.
func (e *Events) tell() {
	text := wording.First(e.unreachable, mostSilent)
	if len(e.unreachable) > 0 && text != e.told {
		fmt.Fprintf(e.Lookup.Warn, "%s: no answer from %s\n", e.Target.App, text)
		e.told = text
	}
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

// How the events of all instances are read: so many at once, for so long, and so many bytes of agents elsewhere.
const (
	readAtOnce   = 64
	eachPatience = 4 * apps.Patience
	mostOfAll    = 4 * mostEvents
)

// part is what was read of an instance.
type part struct {
	events []event
	where  string // the file's path, or the agent's life
	read   int64  // bytes of whole lines, from its start
	err    error
}

// gather reads what has come of instances, and names those whose agents have died since they were asked: the others'
// events are wanted all the same.
func (e *Events) gather(ctx context.Context, reader Reader, names []string) (
	found []event, gone []string, err error,
) {
	inTime, cancel := context.WithTimeout(ctx, eachPatience)
	defer cancel()
	parts := make([]part, len(names))
	turn := make(chan struct{}, readAtOnce)
	var left atomic.Int64
	left.Store(mostOfAll)
	var wg sync.WaitGroup
	for i, name := range names {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			parts[i] = e.more(inTime, reader, name, &left)
		})
	}
	wg.Wait()
	for i, one := range parts {
		name := names[i]
		m := reader.member(name)
		switch {
		case one.err == nil:
			found = append(found, one.events...)
			e.where[name], e.read[name] = one.where, one.read
		case e.Target.Instance != nil || reader.Elsewhere[name] == nil || reader.Facts.Past != nil || ctx.Err() != nil:
			return nil, nil, one.err
		default:
			gone = append(gone, name+" on "+apps.HostOf(*m))
		}
	}
	return found, gone, nil
}

// more reads the whole lines that have come to an instance's file, here or from its agent on another host. A line that
// is no event is left out.
func (e *Events) more(ctx context.Context, reader Reader, instance string, left *atomic.Int64) part {
	if agent := reader.Elsewhere[instance]; agent != nil {
		inc := reader.member(instance).Inc
		out := bounded{left: left}
		asking, cancel := context.WithTimeout(ctx, apps.Patience)
		defer cancel()
		from := e.from(instance, inc)
		if err := agent.Logs(asking, journal.Log, from, false, &out); err != nil {
			return part{err: reader.failed(instance, err)}
		}
		return eventsOf(out.text.Bytes(), inc, from)
	}
	dir, err := reader.dir(instance)
	if err != nil {
		return part{err: err}
	}
	path := filepath.Join(dir, journal.File)
	from := e.from(instance, path)
	text, err := readFrom(path, from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return part{err: err}
	}
	return eventsOf(text, path, from)
}

// eventsOf are the events of whole lines that were read from there on.
func eventsOf(text []byte, where string, from int64) part {
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	p := part{where: where, read: from + int64(len(whole))}
	for line := range bytes.Lines(whole) {
		one := event{text: bytes.TrimRight(line, "\n")}
		if json.Unmarshal(line, &one.Line) == nil {
			p.events = append(p.events, one)
		}
	}
	return p
}

// from is how far an instance's events were read. It begins anew with one whose events are in another file now.
func (e *Events) from(instance, where string) int64 {
	if e.where[instance] != where {
		return 0
	}
	return e.read[instance]
}

// mostEvents is how many bytes of an instance's events are read at once.
const mostEvents = 64 << 20

// bounded takes so many bytes and no more, alone and with others: an agent is anybody who can write its record.
type bounded struct {
	text bytes.Buffer
	left *atomic.Int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > mostEvents || b.left.Add(-int64(len(p))) < 0 {
		return 0, fmt.Errorf("more than %d bytes of events of one instance, or %d of all, at once",
			mostEvents, mostOfAll)
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
