package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/status"
)

// What a person is warned of while a process runs.
const (
	warnCheckpoints = "checkpoints" // the store does not take them
	warnAnew        = "anew"        // the gang does not go on from what is stored
	warnApart       = "apart"       // a restart would begin anew
	warnWithout     = "without"     // it starts without the step that its gang goes on from
	warnOutputs     = "outputs"     // and a name: another app has the same place
)

// Events of events.jsonl that are no transitions.
const (
	eventWarning = "warning"
	eventMended  = "mended"
	eventLeaving = "leaving-outputs"
)

// warnAgain is how long the same warning is not repeated on the terminal; status has it all the time.
const warnAgain = 10 * time.Minute

// warnings are what a person should know of while it lasts.
type warnings struct {
	mu   sync.Mutex
	of   map[string]status.Warning
	told map[string]time.Time
}

// warn has status tell of something until it is mended, and the terminal now: of a kind at most once in warnAgain.
func (a *agent) warn(kind, text string) {
	text = strings.Join(strings.Fields(text), " ")
	now := time.Now()
	w := &a.warnings
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of, w.told = map[string]status.Warning{}, map[string]time.Time{}
	}
	one, known := w.of[kind]
	if !known {
		one = status.Warning{Kind: kind, Since: status.Stamp(now)}
	}
	one.Text = text
	w.of[kind] = one
	if told, ok := w.told[kind]; ok && now.Sub(told) < warnAgain {
		return
	}
	w.told[kind] = now
	a.event(eventWarning, text, now)
}

// mended takes a warning back; what the terminal was told of is said to be over.
func (a *agent) mended(kind, text string) {
	w := &a.warnings
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.of[kind]; !ok {
		return
	}
	delete(w.of, kind)
	a.event(eventMended, text, time.Now())
}

// all are the warnings that stand, by their kind.
func (w *warnings) all() []status.Warning {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.of), func(x, y status.Warning) int { return cmp.Compare(x.Kind, y.Kind) })
}

// event writes a line of events.jsonl that is no transition.
func (a *agent) event(kind, cause string, at time.Time) {
	s := a.loop.State()
	if s.Instance.Component == "" {
		return
	}
	line, err := json.Marshal(struct {
		At         time.Time     `json:"at"`
		Instance   string        `json:"instance"`
		Generation int           `json:"generation"`
		Attempt    int           `json:"attempt"`
		Event      string        `json:"event"`
		From       machine.Phase `json:"from"`
		To         machine.Phase `json:"to"`
		Cause      string        `json:"cause"`
	}{status.Stamp(at), s.Instance.String(), s.Gen, s.Attempt, kind, s.Phase, s.Phase, cause})
	if err == nil {
		err = appendLine(filepath.Join(a.logDir, s.Instance.String(), "events.jsonl"), line)
	}
	if err != nil {
		a.log.Warn("events.jsonl", "err", err)
	}
}
