package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kind is the kind of an event.
type kind string

// The kinds. In brackets: the fields beside At, App and Run.
const (
	started   kind = "started"   // a process runs [Instance Gen Attempt Pid Ticks Host Holder]
	ending    kind = "ending"    // a process is about to end by itself or after TERM [Instance Pid Ticks Code]
	dead      kind = "dead"      // a process was found dead; At is when it was last seen alive [Pid Ticks]
	directive kind = "directive" // a directive was read [Gen Act Sealed Asked]
	released  kind = "released"  // a generation was seen released for the first time [Gen Missing]
	reported  kind = "reported"  // a result of 0 stands in a member's record [Instance Gen Asked]
	verdict   kind = "verdict"   // a verdict was read [Gen Outcome Text Asked]
	runBegins kind = "run"       // the launcher begins a run [Scope Instances]
	runStops  kind = "stopped"   // an operator has ended a run whose data was lost [Why]
	agentEnds kind = "agent"     // an agent has ended [Instance Host Pid Code]
	dataLoss  kind = "loss"      // the registry's data is an older copy, or missing; without App: of all apps [Asked]
	fault     kind = "fault"     // the schedule did something [Why]
	notice    kind = "notice"    // something that is no fault and no evidence [Why]
)

// event is one line of a history.
type event struct {
	At        int64    `json:"at"` // CLOCK_BOOTTIME, nanoseconds
	Kind      kind     `json:"kind"`
	App       string   `json:"app,omitempty"`
	Run       string   `json:"run,omitempty"`
	Instance  string   `json:"instance,omitempty"`
	Gen       int      `json:"gen,omitempty"`
	Attempt   int      `json:"attempt,omitempty"`
	Pid       int      `json:"pid,omitempty"`
	Ticks     uint64   `json:"ticks,omitempty"` // start of the process, /proc/<pid>/stat field 22
	Host      string   `json:"host,omitempty"`
	Code      int      `json:"code,omitempty"`
	Holder    int      `json:"holder,omitempty"` // pid of a process of this rank that still lived
	Asked     int64    `json:"asked,omitempty"`  // when the read began that ended at At; of a loss: when the copy was asked for, 0: none
	Act       string   `json:"act,omitempty"`
	Sealed    int      `json:"sealed,omitempty"`  // generation of the newest roster
	Missing   []string `json:"missing,omitempty"` // instances of the roster that had not acknowledged its generation
	Outcome   string   `json:"outcome,omitempty"`
	Text      string   `json:"text,omitempty"` // the whole verdict
	Scope     string   `json:"scope,omitempty"`
	Instances []string `json:"instances,omitempty"`
	Why       string   `json:"why,omitempty"`
}

// process is what a history says of one process.
type process struct {
	event       // its start
	until int64 // it was alive then
	ended bool  // it ended by itself, with code
	code  int
}

// story is a history, arranged.
type story struct {
	events    []event    // in the order of At
	processes []*process // in the order of their starts
	losses    []event
}

// arrange puts a history in order.
func arrange(events []event) story {
	s := story{events: slices.Clone(events)}
	slices.SortStableFunc(s.events, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	type id struct {
		pid   int
		ticks uint64
	}
	byID := map[id]*process{}
	for _, e := range s.events {
		switch e.Kind { //nolint:exhaustive // the others are read by the rules
		case started:
			p := &process{event: e, until: e.At}
			s.processes = append(s.processes, p)
			byID[id{e.Pid, e.Ticks}] = p
		case dataLoss:
			s.losses = append(s.losses, e)
		}
	}
	for _, e := range s.events { // a process may have been seen alive before it wrote its first line
		p := byID[id{e.Pid, e.Ticks}]
		switch {
		case p == nil:
		case e.Kind == ending:
			p.until, p.ended, p.code = max(p.until, e.At), true, e.Code
		case e.Kind == dead:
			p.until = max(p.until, e.At)
		}
	}
	return s
}

// lostBetween tells whether the registry lost data of the app within that time.
func (s story) lostBetween(app string, from, to int64) bool {
	return slices.ContainsFunc(s.losses, func(l event) bool {
		return (l.App == "" || l.App == app) && from <= l.At && l.At <= to
	})
}

// lostVerdict tells whether the registry lost a verdict before that time: its data went back to a copy that was asked
// for before the verdict was read, or is missing.
func (s story) lostVerdict(v event, to int64) bool {
	return slices.ContainsFunc(s.losses, func(l event) bool {
		return (l.App == "" || l.App == v.App) && v.Asked <= l.At && l.At <= to && l.Asked <= v.At
	})
}

// scopes are the restart scopes by app.
func (s story) scopes() map[string]string {
	all := map[string]string{}
	for _, e := range s.events {
		if e.Kind == runBegins {
			all[e.App] = e.Scope
		}
	}
	return all
}

// clock prints a time of a history in seconds.
func clock(at int64) string { return strconv.FormatFloat(float64(at)/1e9, 'f', 3, 64) }

func (p *process) String() string {
	return fmt.Sprintf("%s %s %s of generation %d (pid %d, attempt %d, %s, from %s to %s)",
		p.App, p.Run, p.Instance, p.Gen, p.Pid, p.Attempt, p.Host, clock(p.At), clock(p.until))
}

// counts are how often each word occurs, as `3 a, 1 b`.
func counts(words []string) string {
	n := map[string]int{}
	for _, w := range words {
		n[w]++
	}
	var all []string
	for _, w := range slices.Sorted(maps.Keys(n)) {
		all = append(all, fmt.Sprintf("%d %s", n[w], w))
	}
	return strings.Join(all, ", ")
}
