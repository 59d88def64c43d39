package registry

import (
	"fmt"
	"slices"
	"time"
)

// AppRecord is the key `app`: the definition that this app id runs. Only a new run changes it.
type AppRecord struct {
	Proto  Proto  `json:"proto,omitzero"`
	Run    string `json:"run"`
	Digest string `json:"digest"`
	Def    string `json:"def,omitempty"` // resolved App: gzip, base64
	// of a Def that is too long for this key: its chunks are def/<id>/<n>
	DefID   string         `json:"def_id,omitempty"`
	Counts  map[string]int `json:"counts"`
	Created time.Time      `json:"created"`
	By      string         `json:"by"`
	User    string         `json:"user,omitempty"`  // who launched it, as its launcher or host names them
	Token   string         `json:"token,omitempty"` // secret that agents of the run show each other from host to host
	Times   AgreedTimes    `json:"times,omitzero"`
	Later   later          `json:"-"`
}

// AgreedTimes are the times in seconds that all agents of a run must share: a conductor with a shorter grace than a
// member assumes would replace the member while its process lives.
type AgreedTimes struct {
	TTL      float64    `json:"ttl"`
	Lost     float64    `json:"lost"`
	LostMass float64    `json:"lost_mass"`
	Fence    FenceTimes `json:"fence,omitzero"`
	Later    later      `json:"-"`
}

// FenceTimes are the fixed times of the founder's build in seconds (times.go). Peers and the conductor count on them: a
// build that changes one may not be mixed in silently. Builds before the first span did not write them.
type FenceTimes struct {
	SilenceMargin float64 `json:"silence_margin"`
	After         float64 `json:"after"`
	Evidence      float64 `json:"evidence"`
	AskRound      float64 `json:"ask_round"`
	Stop          float64 `json:"stop"`
	Grace         float64 `json:"grace"`
	ClockMargin   float64 `json:"clock_margin"`
	Later         later   `json:"-"`
}

// firstFence are the times of builds that did not write them.
var firstFence = FenceTimes{
	SilenceMargin: 3, After: 5, Evidence: 5, AskRound: 1.5, Stop: 20, Grace: 10, ClockMargin: 5,
}

// Difference of two times that should be equal, each with its name and unit.
type Difference struct {
	Name       string
	Have, Want float64 // seconds
	Fixed      bool    // by the build: no option sets it
}

// Differ lists the times in which an agent with times t differs from a run that agreed on want.
func (t AgreedTimes) Differ(want AgreedTimes) []Difference {
	have, fence := t.fence(), want.fence()
	all := []Difference{
		{"--session-ttl", t.TTL, want.TTL, false},
		{"--lost-grace", t.Lost, want.Lost, false},
		{"--lost-mass", t.LostMass, want.LostMass, false},
		{"margin of a silence", have.SilenceMargin, fence.SilenceMargin, true},
		{"silence until the fence", have.After, fence.After, true},
		{"validity of an answer", have.Evidence, fence.Evidence, true},
		{"round of questions", have.AskRound, fence.AskRound, true},
		{"fence stop", have.Stop, fence.Stop, true},
		{"fence grace", have.Grace, fence.Grace, true},
		{"margin of clocks", have.ClockMargin, fence.ClockMargin, true},
	}
	return slices.DeleteFunc(all, func(d Difference) bool { return d.Have == d.Want })
}

// Known tells whether the run has agreed on times at all.
func (t AgreedTimes) Known() bool { return t.TTL != 0 || t.Lost != 0 || t.LostMass != 0 }

func (t AgreedTimes) fence() FenceTimes {
	if f := t.Fence; f.Stop != 0 {
		return f
	}
	return firstFence
}

func (d Difference) String() string {
	return fmt.Sprintf("%s %gs, the run uses %gs", d.Name, d.Have, d.Want)
}
