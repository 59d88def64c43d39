package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/linequeue"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// Events of events.jsonl that are no transitions.
const (
	EventWarning = "warning"
	EventMended  = "mended"
	EventLeaving = "leaving-outputs"
	EventResumed = "resumed"
	EventSaved   = "saved" // the outputs, while the process runs
	EventKept    = "kept"  // the folder of a side process, after the run
	// EventCheckpoint: a newer checkpoint is complete; of many that follow each other closely the first has a line.
	EventCheckpoint = "checkpoint"
	eventDropped    = "dropped" // events of before, because the file could not be written
)

// closePatience is how long the last events may take to be written.
const closePatience = time.Second

// warnAgain is how long the same warning is not repeated on the terminal; status has it all the time.
const warnAgain = 10 * time.Minute

// Journal is the events and the warnings of one instance. Its methods may be called from any goroutine, and wait for no
// disk: the machine's loop calls them. Close it.
type Journal struct {
	log    *slog.Logger
	logDir string // of the run: the instance's folder is below it
	state  func() machine.State
	hide   func(string) string // takes secret values out of a text

	mu       sync.Mutex
	lines    *linequeue.Queue
	since    time.Time                 // the machine's last transition
	started  time.Time                 // the process's last start
	warnings map[string]status.Warning // that stand, by kind
	told     map[string]time.Time      // when a kind was last told of
	saved    time.Time                 // when a checkpoint was last told of
	newest   time.Time                 // when the newest checkpoint was complete
	written  []Line                    // of this agent, for Lines
}

// New begins with nothing. state is where the machine stands; hide takes secret values out of a text.
func New(log *slog.Logger, logDir string, state func() machine.State, hide func(string) string) *Journal {
	j := &Journal{
		log: log, logDir: logDir, state: state, hide: hide, warnings: map[string]status.Warning{},
		told: map[string]time.Time{},
	}
	j.lines = linequeue.New(j.append, j.dropped)
	return j
}

// Close has the last events written.
func (j *Journal) Close() { j.queue().Close(closePatience) }

// Flush has the events so far written.
func (j *Journal) Flush() {
	j.mu.Lock()
	before := j.lines
	j.lines = linequeue.New(j.append, j.dropped)
	j.mu.Unlock()
	before.Close(closePatience)
}

func (j *Journal) queue() *linequeue.Queue {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines
}

// File is the name of the file of events in the log folder of an instance.
const (
	File = Log + ".jsonl"
	Log  = "events" // as an agent's API names it
)

// Line is one line of events.jsonl.
type Line struct {
	At         time.Time     `json:"at"`
	Instance   string        `json:"instance"`
	Generation int           `json:"generation"`
	Attempt    int           `json:"attempt"`
	Event      string        `json:"event"`
	From       machine.Phase `json:"from"`
	To         machine.Phase `json:"to"`
	Cause      string        `json:"cause,omitempty"`
}

// Trace writes the line of a transition.
func (j *Journal) Trace(t machine.Transition) {
	at := status.Stamp(t.Event.At)
	j.mu.Lock()
	j.since = at
	if t.To == machine.Running && t.From != machine.Running {
		j.started = at
	}
	j.mu.Unlock()
	j.write(t.State, Line{At: at, Event: string(t.Event.Kind), From: t.From, To: t.To, Cause: t.Why()})
}

// Since is when the machine's last transition was; zero: it has not begun.
func (j *Journal) Since() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.since
}

// Started is when the instance's process was last started; nil: it was not.
func (j *Journal) Started() *time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.started.IsZero() {
		return nil
	}
	return new(j.started)
}

// Warn has status tell of something until it is mended, and the terminal now: of a kind at most once in ten minutes.
func (j *Journal) Warn(kind, text string) {
	text = j.hide(strings.Join(strings.Fields(text), " "))
	now := time.Now()
	j.mu.Lock()
	one, known := j.warnings[kind]
	if !known {
		one = status.Warning{Kind: kind, Since: status.Stamp(now)}
	}
	one.Text = text
	j.warnings[kind] = one
	last, said := j.told[kind]
	quiet := said && now.Sub(last) < warnAgain
	if !quiet {
		j.told[kind] = now
	}
	j.mu.Unlock()
	if !quiet {
		j.Event(EventWarning, text, now)
	}
}

// Mended takes a warning back; what the terminal was told of is said to be over.
func (j *Journal) Mended(kind, text string) {
	j.mu.Lock()
	_, stood := j.warnings[kind]
	delete(j.warnings, kind)
	j.mu.Unlock()
	if stood {
		j.Event(EventMended, text, time.Now())
	}
}

// checkpointAgain is for how long no other checkpoint is told of.
const checkpointAgain = 10 * time.Second

// Checkpoint tells of a newer complete checkpoint.
func (j *Journal) Checkpoint(step int64, at time.Time) {
	j.mu.Lock()
	j.newest = at
	quiet := at.Sub(j.saved) < checkpointAgain
	if !quiet {
		j.saved = at
	}
	j.mu.Unlock()
	if !quiet {
		j.Event(EventCheckpoint, fmt.Sprintf("step %d is complete", step), at)
	}
}

// Saved is when the newest checkpoint was complete; zero: this agent has seen none.
func (j *Journal) Saved() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.newest
}

// mostLines is how many events are remembered, a few MB.
const mostLines = 10_000

// Lines are the events of this agent; false: there were too many to remember them all.
func (j *Journal) Lines() ([]Line, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.written), len(j.written) < mostLines
}

// Warnings are those that stand, by their kind.
func (j *Journal) Warnings() []status.Warning {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.SortedFunc(maps.Values(j.warnings), func(x, y status.Warning) int {
		return cmp.Compare(x.Kind, y.Kind)
	})
}

// Event writes a line that is no transition.
func (j *Journal) Event(kind, cause string, at time.Time) {
	s := j.state()
	j.write(s, Line{At: status.Stamp(at), Event: kind, From: s.Phase, To: s.Phase, Cause: cause})
}

// write adds a line for the instance of a state; an agent without an index has none.
func (j *Journal) write(s machine.State, l Line) {
	if s.Instance.Component == "" {
		return
	}
	l = of(s, l)
	j.mu.Lock()
	if len(j.written) < mostLines {
		j.written = append(j.written, l)
	}
	j.mu.Unlock()
	j.queue().Add(encode(l))
}

// of is a line of the instance of a state.
func of(s machine.State, l Line) Line {
	l.Instance, l.Generation, l.Attempt = s.Instance.String(), s.Gen, s.Attempt
	return l
}

func encode(l Line) []byte {
	text, err := json.Marshal(l)
	if err != nil {
		panic("event without JSON: " + err.Error())
	}
	return text
}

// dropped is the line in place of n events. The queue calls it within Add or Close.
func (j *Journal) dropped(n int) []byte {
	s := j.state()
	return encode(of(s, Line{
		At: status.Stamp(time.Now()), Event: eventDropped, From: s.Phase, To: s.Phase,
		Cause: fmt.Sprintf("%d events were dropped: the file could not be written", n),
	}))
}

// append writes a line into the file of the instance, which never changes once it is known.
func (j *Journal) append(text []byte) {
	err := appendLine(filepath.Join(j.logDir, j.state().Instance.String(), File), text)
	if err != nil {
		j.log.Warn("event lost", "file", File, "err", err)
	}
}

func appendLine(path string, line []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := files.AppendPlain(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		_ = f.Close() // the write's error says more
		return err
	}
	return f.Close()
}
