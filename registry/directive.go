package registry

import (
	"maps"
	"slices"
	"time"
)

// Claimable are the indexes that a newcomer could claim under this directive, of a flex up as well.
func (d Directive) Claimable() []Instance {
	if d.Verdict != nil {
		return nil
	}
	counts := map[string]int{}
	maps.Copy(counts, d.Counts)
	for name, n := range d.Target {
		counts[name] = max(counts[name], n)
	}
	var all []Instance
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		for i := range counts[name] {
			all = append(all, Instance{Component: name, Index: i})
		}
	}
	return all
}

// NoStep is what a gang resumes that begins anew although something is stored.
const NoStep = int64(-1)

// Drops tells that an index counts no more: a flex has taken it away. One of a flex up that is on its way
// counts.
func (d Directive) Drops(in Instance) bool {
	n, ok := d.Counts[in.Component]
	return ok && in.Index >= max(n, d.Target[in.Component])
}

// Releases tells whether the instances of a component may start under a directive whose act is run.
func (d Directive) Releases(component string) bool {
	return len(d.Released) == 0 || slices.Contains(d.Released, component)
}

// Act is what a directive tells the gang.
type Act string

// The acts.
const (
	ActWait Act = "wait"
	ActRun  Act = "run"
	ActStop Act = "stop"
)

// Directive is the one key that everybody waits for; written only by the conductor.
type Directive struct {
	Version   int            `json:"version"`
	Run       string         `json:"run"`
	Gen       int            `json:"gen"`
	Act       Act            `json:"act"`
	Seq       int            `json:"seq"`
	By        string         `json:"by"` // incarnation of the writer
	Counts    map[string]int `json:"counts"`
	Target    map[string]int `json:"target,omitempty"` // flex up: what will be
	Roster    RosterRef      `json:"roster,omitzero"`  // sealed last: this generation's when act is run
	Resume    *int64         `json:"resume,omitempty"` // step that every rank has; NoStep: none, and Anew says why
	Anew      string         `json:"anew,omitempty"`   // who has stored which steps, where none is everybody's
	Budget    Budget         `json:"budget,omitzero"`  // gang scope
	Retries   Retries        `json:"retries,omitzero"`
	Released  []string       `json:"released,omitempty"` // components released so far; empty: all
	Why       string         `json:"why,omitempty"`
	First     string         `json:"first,omitempty"`      // instance that failed first
	StopGrace float64        `json:"stop_grace,omitempty"` // seconds
	Verdict   *Verdict       `json:"verdict,omitempty"`
	Save      *Save          `json:"save,omitempty"` // the last one that was begun
	At        time.Time      `json:"at"`             // for display
}

// Save asks all who have outputs to save what there is of them, while their processes go on.
type Save struct {
	Seq   int      `json:"seq"`            // from 1, of the run
	Stamp string   `json:"stamp"`          // the wall time in UTC, as HBox writes it: the same for all
	Asks  []string `json:"asks,omitempty"` // IDs of the asks that it answers; none: its time had come
}

// Retries say how often the whole gang was formed anew in place of a verdict (muster.retry).
type Retries struct {
	Used  int     `json:"used,omitempty"`  // those that muster.retry counts
	Free  int     `json:"free,omitempty"`  // those that it does not: the app could not help it
	Gen   int     `json:"gen"`             // what the last one formed: results of older generations count no more
	Pause float64 `json:"pause,omitempty"` // seconds that this generation waits before it starts
}

// RosterRef names a sealed roster by its content.
type RosterRef struct {
	ID     string `json:"id"` // <gen>-<first 12 hex of the sha256>
	Chunks int    `json:"chunks"`
	Bytes  int    `json:"bytes"` // uncompressed
	SHA256 string `json:"sha256"`
}

// Wait is how long the generation that the last retry formed waits before it starts.
func (t Retries) Wait() time.Duration { return time.Duration(t.Pause * float64(time.Second)) }

// Pause is how long the directive's generation waits before it starts.
func (d Directive) Pause() time.Duration {
	if d.Retries.Gen != d.Gen {
		return 0
	}
	return d.Retries.Wait()
}

// FormsAnew tells that a result of that generation, or of none, counts no more: muster.retry has every instance
// start again.
func (d Directive) FormsAnew(since int) bool { return d.Act != ActStop && d.Retries.Gen > since }
