package logs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// entry is one line of a log.
type entry struct {
	status.LogLine
	instance string
	stream   Stream
}

// oneByLines prints one instance's lines, whichever are asked for.
func (l Reader) oneByLines(ctx context.Context, instance string) error {
	show := func(e entry) error {
		_, err := e.stream.Out.Write(e.Text)
		return err
	}
	if l.JSON != nil {
		show = l.object
	}
	dir, err := "", error(nil)
	if l.Elsewhere[instance] == nil {
		if dir, err = l.dir(instance); err != nil {
			return err
		}
	}
	pointed := dir != "" && l.pointOut(instance, dir)
	var found bool
	if l.Follow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		var end sync.WaitGroup
		defer end.Wait()
		defer cancel()
		if dir != "" {
			end.Go(func() { l.cancelAtEnd(ctx, instance, cancel) })
		}
		show = inTurn(show)
		found, err = l.each(func(o Stream) (bool, error) { return l.read(ctx, instance, o, show) })
	} else {
		found, err = l.merge(ctx, []string{instance}, show)
	}
	if !found && !pointed && err == nil && dir != "" {
		fmt.Fprintf(l.Lookup.Warn, "%s is not there yet: nothing was written\n", filepath.Join(dir, l.Streams[0].File))
	}
	return err
}

// inTurn lets several callers show lines.
func inTurn(show func(entry) error) func(entry) error {
	var mu sync.Mutex
	return func(e entry) error {
		mu.Lock()
		defer mu.Unlock()
		return show(e)
	}
}

// named prints a line with its instance's name.
func (l Reader) named(e entry) error {
	if l.JSON != nil {
		return l.object(e)
	}
	_, err := fmt.Fprintf(e.stream.Out, "%-12s %s %s\n", e.instance, e.stream.Mark, wording.Program(e.line()))
	return err
}

// object prints a line as JSON. What is no UTF-8 in it is U+FFFD there.
func (l Reader) object(e entry) error {
	said := struct {
		App      string     `json:"app"`
		Instance string     `json:"instance"`
		Stream   string     `json:"stream"`
		At       *time.Time `json:"at"` // null: not known
		Line     string     `json:"line"`
	}{l.Facts.ID, e.instance, strings.TrimSuffix(e.stream.File, ".log"), nil, e.line()}
	if !e.At.IsZero() {
		said.At = &e.At
	}
	enc := json.NewEncoder(l.JSON)
	enc.SetEscapeHTML(false)
	return enc.Encode(said)
}

func (e entry) line() string { return string(bytes.TrimRight(e.Text, "\r\n")) }

// read hands on those lines of one log that are asked for, from here or from its agent elsewhere. It tells whether
// there is a log.
func (l Reader) read(ctx context.Context, instance string, o Stream, show func(entry) error) (found bool, err error) {
	untimed := false
	q := status.LogQuery{Tail: l.Tail, Since: l.Since, Follow: l.Follow}
	pick := func(line status.LogLine) error {
		e := entry{line, instance, o}
		if e.At.IsZero() {
			e.At = writtenBy(e.Text)
		}
		switch {
		case l.Since.IsZero():
		case e.At.IsZero() && !untimed:
			untimed = true
			fmt.Fprintf(l.Lookup.Warn, "%s/%s: %s has lines whose time is not known: --since shows them all\n",
				l.Facts.ID, instance, o.File)
		case !e.At.IsZero() && e.At.Before(l.Since):
			return nil
		}
		if l.Grep != nil && !l.Grep.MatchString(e.line()) {
			return nil
		}
		return show(e)
	}
	if agent := l.Elsewhere[instance]; agent != nil {
		return true, l.ask(ctx, agent, instance, o, q, pick)
	}
	dir, err := l.dir(instance)
	if err != nil {
		return false, err
	}
	err = q.Lines(ctx, filepath.Join(dir, o.File), pick)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, err
}

// writtenBy is the time that a line of an agent's log begins with; zero: it has none.
func writtenBy(line []byte) time.Time {
	text, ok := bytes.CutPrefix(line, []byte("time="))
	if !ok {
		return time.Time{}
	}
	word, _, _ := bytes.Cut(text, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(word))
	if err != nil {
		return time.Time{}
	}
	return status.Stamp(at)
}

// ask has an agent send lines. One that falls silent in the middle is not waited for.
func (l Reader) ask(
	ctx context.Context, agent apps.Agent, instance string, o Stream, q status.LogQuery,
	show func(status.LogLine) error,
) error {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(apps.Patience, cancel)
	if q.Follow {
		silent.Stop() // a log may be silent for hours
	}
	err := agent.Lines(asking, strings.TrimSuffix(o.File, ".log"), q, func(line status.LogLine) error {
		stopped := silent.Stop()
		err := show(line)
		if stopped {
			silent.Reset(apps.Patience)
		}
		return err
	})
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case asking.Err() != nil:
		return fmt.Errorf("%s/%s: its agent did not answer for %s: %s is not complete", l.Facts.ID, instance,
			apps.Patience, o.File)
	}
	return l.failed(instance, err)
}

// ahead is how many bytes of each log are read before they are printed; a line may be longer.
const ahead = 32 << 10

// batcher gathers the lines of a log until there are as many bytes.
type batcher struct {
	lines []entry
	bytes int
	send  func([]entry) error
}

func (b *batcher) add(e entry) error {
	b.lines, b.bytes = append(b.lines, e), b.bytes+len(e.Text)
	if b.bytes < ahead {
		return nil
	}
	return b.flush()
}

func (b *batcher) flush() error {
	lines := b.lines
	b.lines, b.bytes = nil, 0
	if len(lines) == 0 {
		return nil
	}
	return b.send(lines)
}

// source is one of the logs that are merged.
type source struct {
	batches chan []entry // one after the other: the reader holds one, and this side one
	rest    []entry
	found   bool
	err     error
}

// next is the first line that was not printed; nil: there is none.
func (s *source) next() *entry {
	if len(s.rest) == 0 {
		s.rest = <-s.batches
	}
	if len(s.rest) == 0 {
		return nil
	}
	return &s.rest[0]
}

// merge prints the lines of several instances in the order of time. Those whose time is not known come first, log by
// log; two of one time in the order of instances and streams. It tells whether there was a log.
func (l Reader) merge(ctx context.Context, names []string, show func(entry) error) (found bool, err error) {
	if len(names) == 1 && len(l.Streams) == 1 {
		return l.read(ctx, names[0], l.Streams[0], show)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sources []*source
	var wg sync.WaitGroup
	for _, name := range names {
		for _, o := range l.Streams {
			s := &source{batches: make(chan []entry)}
			sources = append(sources, s)
			wg.Go(func() {
				defer close(s.batches)
				b := batcher{send: func(lines []entry) error {
					select {
					case s.batches <- lines:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}}
				s.found, s.err = l.read(ctx, name, o, b.add)
				s.err = cmp.Or(s.err, b.flush()) // what was read before it failed is printed
			})
		}
	}
	for err == nil {
		var first *source
		for _, s := range sources {
			if e := s.next(); e != nil && (first == nil || e.At.Before(first.rest[0].At)) {
				first = s
			}
		}
		if first == nil {
			break
		}
		err = show(first.rest[0])
		first.rest[0] = entry{} // it may be long
		first.rest = first.rest[1:]
	}
	cancel()
	wg.Wait()
	if err != nil {
		return true, err
	}
	errs := make([]error, len(sources))
	for i, s := range sources {
		errs[i] = s.err
	}
	return slices.ContainsFunc(sources, func(s *source) bool { return s.found }), errors.Join(errs...)
}
