package registry

import (
	"maps"
	"slices"
	"time"
)

// Claimable are the indexes that a newcomer could claim under this directive, including those of a flex up.
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

// NoStep is the step to resume from of a gang that restarts without a checkpoint although some are stored.
const NoStep = int64(-1)

// Drops tells whether a flex has removed an index. The new indexes of a flex up that is on its way are not removed.
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

// Directive is the one key that all agents watch. Only the conductor writes it.
type Directive struct {
	Run           string         `json:"run"`
	Gen           int            `json:"gen"`
	Act           Act            `json:"act"`
	Seq           int            `json:"seq"`
	By            string         `json:"by"` // incarnation of the writer
	Counts        map[string]int `json:"counts"`
	Target        map[string]int `json:"target,omitempty"` // flex up: the counts to reach
	Roster        RosterRef      `json:"roster,omitzero"`  // the last sealed one: this generation's if act is run
	Resume        *int64         `json:"resume,omitempty"` // step that every rank has; NoStep: see FromBeginning
	FromBeginning string         `json:"anew,omitempty"`   // the stored steps of each rank, if no step is common to all
	Budget        Budget         `json:"budget,omitzero"`  // gang scope
	Retries       Retries        `json:"retries,omitzero"`
	Row           int            `json:"row,omitempty"`      // restarts in a row (muster.restart.backoff)
	Rest          float64        `json:"rest,omitempty"`     // seconds that this generation waits before it starts
	Released      []string       `json:"released,omitempty"` // components released so far; empty: all
	Why           string         `json:"why,omitempty"`
	First         string         `json:"first,omitempty"`      // instance that failed first
	StopGrace     float64        `json:"stop_grace,omitempty"` // seconds
	Verdict       *Verdict       `json:"verdict,omitempty"`
	Save          *Save          `json:"save,omitempty"` // the last save that began
	At            time.Time      `json:"at"`             // for display, and the pause before staging begins there
	// Adopted: the registry had lost the app's data. Until its holder writes it again, a record may be missing.
	Adopted bool  `json:"adopted,omitempty"`
	Later   later `json:"-"`
}

// Save asks all members with outputs to save them while their processes run.
type Save struct {
	Seq   int      `json:"seq"`            // from 1, of the run
	Stamp string   `json:"stamp"`          // wall time in UTC in HBox's form, the same for all members
	Asks  []string `json:"asks,omitempty"` // IDs of the asks that it answers; none: it was due
	Later later    `json:"-"`
}

// Retries count the full restarts in place of a verdict (muster.retry).
type Retries struct {
	Used int `json:"used,omitempty"` // restarts that muster.retry counts
	Free int `json:"free,omitempty"` // restarts that it does not count: the app did not cause the failure
	// generation of the last restart: results of older generations no longer count
	Gen   int   `json:"gen"`
	Later later `json:"-"`
}

// RosterRef names a sealed roster by its content.
type RosterRef struct {
	ID     string `json:"id"` // <gen>-<first 12 hex of the sha256>
	Chunks int    `json:"chunks"`
	Bytes  int    `json:"bytes"` // uncompressed
	SHA256 string `json:"sha256"`
	Packed string `json:"packed,omitempty"` // sha256 of the packed bytes: they are checked without unpacking them
	// Seeds are the peer addresses, separated by spaces, of the members that read the roster from the registry and give
	// it to the others; empty: everybody reads it from the registry.
	Seeds string `json:"seeds,omitempty"`
	Later later  `json:"-"`
}

// Pause is how long the directive's generation waits before it starts.
func (d Directive) Pause() time.Duration { return time.Duration(d.Rest * float64(time.Second)) }

// Restarts tells whether a result of that generation, or of none, no longer counts: muster.retry restarts every
// instance.
func (d Directive) Restarts(since int) bool { return d.Act != ActStop && d.Retries.Gen > since }
