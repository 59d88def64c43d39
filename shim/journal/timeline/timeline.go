package timeline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
)

// Timeline is a run as its events tell it.
type Timeline struct {
	Version     int          `json:"version"`
	Generations []generation `json:"generations"`
	Spans       []span       `json:"spans"` // by instance, in the order of time
	Saves       []save       `json:"saves"` // of outputs while processes ran
	account
	// Unreachable are instances whose events are not among them: their agents did not answer, each with its host.
	Unreachable []string `json:"unreachable,omitempty"`
}

// generation is one set of processes that know each other.
type generation struct {
	Number int       `json:"generation"`
	At     time.Time `json:"at"`            // its first process ran, or if none did its first agent waited
	Why    string    `json:"why,omitempty"` // what ended the one before
}

// save is what an instance says of a save.
type save struct {
	Instance string    `json:"instance"`
	At       time.Time `json:"at"`
	Text     string    `json:"text"`
}

// span is a time in which an instance was in one phase.
type span struct {
	Instance   string        `json:"instance"`
	Phase      machine.Phase `json:"phase"`
	From       time.Time     `json:"from"`
	To         *time.Time    `json:"to"` // null: it goes on
	Generation int           `json:"generation"`
	Attempt    int           `json:"attempt"`
	Why        string        `json:"why,omitempty"` // how it ended
	// Kept is until when the work of a process is in a checkpoint, or counts because no later process repeats it.
	Kept *time.Time `json:"kept,omitempty"`
}

// account is where the time of all instances went, in seconds of one instance.
type account struct {
	Spent map[string]float64 `json:"spent"`
	// Ratio is the share of productive in all of it: ETTR, the effective training time ratio; null: no time yet.
	Ratio *float64 `json:"productive_ratio"`
}

// What time was spent for, in the order of a life without trouble.
const (
	joining    = "joining"    // looking for an index
	staging    = "staging"    // fetching files, making the container
	barrier    = "barrier"    // waiting for the others
	productive = "productive" // running, and what was done is kept
	lost       = "lost"       // running, and what was done was done again
	restarting = "restarting" // from the end of a process to the start of the next
	held       = "held"       // ended, and kept for people to look
	leaving    = "leaving"    // saving the outputs, waiting for the gang's end
)

// Kinds are all of them, in that order.
func Kinds() []string {
	return []string{joining, staging, barrier, productive, lost, restarting, held, leaving}
}

// again stands in the cause of an agent's turn to the next generation, before what made it necessary.
const again = " forms: "

// Of lays out the events of a run's instances until now, in any order.
func Of(lines []journal.Line, now time.Time) Timeline {
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b journal.Line) int { return a.At.Compare(b.At) })
	t := Timeline{Version: 1, Generations: generations(lines), Spans: spans(lines), Saves: saves(lines)}
	t.keep(checkpoints(lines))
	t.account = t.accounted(now)
	return t
}

func generations(lines []journal.Line) []generation {
	found, whys := map[int]*generation{}, map[string]string{}
	ran := map[int]bool{}
	for _, l := range lines {
		if head, why, ok := strings.Cut(l.Cause, again); ok && l.From != l.To {
			whys[head] = why
		}
		if l.Generation == 0 || l.From == l.To || l.To != machine.Running && l.To != machine.Waiting {
			continue
		}
		g := found[l.Generation]
		if g == nil {
			g = &generation{Number: l.Generation, At: l.At}
			found[l.Generation] = g
		}
		if l.To == machine.Running && !ran[l.Generation] {
			ran[l.Generation], g.At = true, l.At
		}
	}
	all := []generation{}
	for n, g := range found {
		g.Why = whys["generation "+strconv.Itoa(n)]
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b generation) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func spans(lines []journal.Line) []span {
	open := map[string]int{} // place of an instance's span that goes on
	all := []span{}
	for _, l := range lines {
		if l.From == l.To {
			continue
		}
		if i, ok := open[l.Instance]; ok {
			at := l.At
			all[i].To, all[i].Why = &at, l.Cause
			delete(open, l.Instance)
		}
		if l.To.Final() {
			continue
		}
		open[l.Instance] = len(all)
		all = append(all, span{
			Instance: l.Instance, Phase: l.To, From: l.At, Generation: l.Generation, Attempt: l.Attempt,
		})
	}
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.Instance, b.Instance) })
	return all
}

func saves(lines []journal.Line) []save {
	all := []save{}
	for _, l := range lines {
		if l.Event == journal.EventSaved {
			all = append(all, save{Instance: l.Instance, At: l.At, Text: l.Cause})
		}
	}
	return all
}

// checkpoints are when complete checkpoints were seen.
func checkpoints(lines []journal.Line) []time.Time {
	var all []time.Time
	for _, l := range lines {
		if l.Event == journal.EventCheckpoint {
			all = append(all, l.At)
		}
	}
	return all
}

// keep finds until when the work of each process is kept: of one that another follows in its place, until the last
// checkpoint of the gang.
func (t *Timeline) keep(saved []time.Time) {
	for i := range t.Spans {
		s := &t.Spans[i]
		if s.Phase != machine.Running {
			continue
		}
		s.Kept = s.To
		if !t.followed(i) {
			continue
		}
		s.Kept = new(s.From)
		for _, at := range saved {
			if at.After(s.From) && !at.After(*s.To) {
				s.Kept = new(at)
			}
		}
	}
}

// followed tells that the instance of a span runs again later.
func (t *Timeline) followed(i int) bool {
	for _, later := range t.Spans[i+1:] {
		if later.Instance != t.Spans[i].Instance {
			return false
		}
		if later.Phase == machine.Running {
			return true
		}
	}
	return false
}

func (t *Timeline) accounted(now time.Time) account {
	a := account{Spent: map[string]float64{}}
	for _, k := range Kinds() {
		a.Spent[k] = 0
	}
	ran, all := map[string]bool{}, 0.0
	for i, s := range t.Spans {
		end := now
		if s.To != nil {
			end = *s.To
		}
		took := end.Sub(s.From).Seconds()
		all += took
		if s.Phase == machine.Running {
			ran[s.Instance] = true
			kept := took
			if s.Kept != nil {
				kept = s.Kept.Sub(s.From).Seconds()
			}
			a.Spent[productive] += kept
			a.Spent[lost] += took - kept
			continue
		}
		a.Spent[kindOf(s.Phase, ran[s.Instance] && t.followed(i))] += took
	}
	if all > 0 {
		a.Ratio = new(a.Spent[productive] / all)
	}
	return a
}

// kindOf is what time in a phase is spent for, between two processes of an instance or not.
func kindOf(p machine.Phase, between bool) string {
	if between {
		return restarting
	}
	switch p {
	case machine.Starting, machine.Claiming, machine.Standby:
		return joining
	case machine.Staging:
		return staging
	case machine.Installed, machine.Waiting:
		return barrier
	case machine.Backoff, machine.Fenced:
		return restarting
	case machine.Running:
		return productive
	case machine.Holding:
		return held
	case machine.Stopping, machine.Finishing, machine.Leaving, machine.Superseded, machine.Done:
	}
	return leaving
}
