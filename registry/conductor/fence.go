package conductor

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// A member that hears nothing of the registry cannot tell whether the registry is away or it alone is
// (protocol 6). It asks its peers: when more than half of the gang hears nothing either, all go on; else it
// stops its process before its place is given to another. The conductor's part is in losses: it waits longer
// while more than half of the gang is away, for those are the ones that go on.

// Moments of this file are durations since some moment of the past, on a clock that counts suspended time
// and goes on by itself (CLOCK_BOOTTIME): wall time is set, and a monotonic clock sleeps with its machine.

// Silence is what a member says when a peer asks how long it has heard nothing.
type Silence struct {
	registry.Instance
	Inc    string
	Gen    int           // acknowledged: its own generation
	For    time.Duration // since its last answered renewal was sent
	Fenced bool          // it has stopped its process for that, or does so now
}

// Panel is whom a member asks, fixed for a roster.
type Panel struct {
	gen     int
	rows    []registry.Row  // asked
	alone   map[string]bool // components whose instances are replaced alone: their rows outlive their agents
	own     int             // 1 when the asker is a member that counts itself
	sampled bool
}

// A gang of more members asks so many, chosen by a hash of the asker, and wants more of them to be silent:
// that a minority's sample looks like a majority is then too rare to happen (4e-5 a time).
const (
	askedAtMost           = 64
	sampleNum, sampleDeno = 3, 4
)

// NewPanel is whom me asks in the sealed roster: all instances that the gang waits for, services not.
func NewPanel(f Facts, r registry.Roster, me registry.Instance) Panel {
	p := Panel{gen: r.Gen, alone: map[string]bool{}}
	waited := map[string]bool{}
	for _, c := range f.Components {
		waited[c.Name], p.alone[c.Name] = c.Waited, c.Scope == registry.ScopeInstance
	}
	for _, row := range r.Rows {
		switch {
		case !waited[row.Component]:
		case row.Instance == me:
			p.own = 1
		default:
			p.rows = append(p.rows, row)
		}
	}
	if len(p.rows)+p.own > askedAtMost {
		p.sample(me)
	}
	return p
}

func (p *Panel) sample(me registry.Instance) {
	order := make(map[registry.Instance]uint64, len(p.rows))
	for _, row := range p.rows {
		h := fnv.New64a()
		_, _ = h.Write([]byte(me.String() + " " + row.Instance.String())) // it never fails
		order[row.Instance] = h.Sum64()
	}
	slices.SortFunc(p.rows, func(a, b registry.Row) int { return cmp.Compare(order[a.Instance], order[b.Instance]) })
	p.rows, p.own, p.sampled = p.rows[:askedAtMost], 0, true
}

// Rows are those to ask, all at the same moment.
func (p Panel) Rows() []registry.Row { return p.rows }

// Movers are those to ask whose agents may answer elsewhere than their rows say: who goes by a name keeps its row
// wherever it comes up.
func (p Panel) Movers(app string) []registry.Instance {
	var all []registry.Instance
	for _, row := range p.rows {
		if p.alone[row.Component] && byName(row, app) {
			all = append(all, row.Instance)
		}
	}
	return all
}

// At is the panel with the addresses at which members' agents answer by their records.
func (p Panel) At(records map[registry.Instance]registry.Member) Panel {
	p.rows = slices.Clone(p.rows)
	for i, row := range p.rows {
		if m, ok := records[row.Instance]; ok && holds(m) && m.Peer != "" {
			p.rows[i].Peer, p.rows[i].API = m.Peer, m.API
		}
	}
	return p
}

// Evidence tells whether the answers to one asking show that the registry itself is away: with the asker, who
// is silent or would not ask, more than half of all are silent. No answer is none of silence, nor is that of
// another life than the row's, nor a fenced one's: it has given in already. silent of so many are for people.
func (p Panel) Evidence(t registry.Times, answers []Silence) (silent, of int, shown bool) {
	silent, of = p.own, p.own+len(p.rows)
	for _, row := range p.rows {
		if slices.ContainsFunc(answers, func(a Silence) bool {
			return p.hears(row, a) && a.For >= t.Silent() && !a.Fenced
		}) {
			silent++
		}
	}
	if p.sampled {
		return silent, of, sampleDeno*silent >= sampleNum*of
	}
	return silent, of, 2*silent > of
}

// hears tells that an answer is of the row's own member. One that is replaced alone keeps its row.
func (p Panel) hears(row registry.Row, a Silence) bool {
	return a.Instance == row.Instance && a.Gen == p.gen && (a.Inc == row.Inc || p.alone[row.Component])
}

// Contact is what a member knows of its own contact with the registry, in moments.
type Contact struct {
	Heard    time.Duration // when its last answered renewal was sent
	Evidence time.Duration // when the peers were last asked with evidence as the answer; 0: never
	Asked    time.Duration // when they were last asked at all, all answers being in; 0: never
}

// askAgain is the pause from the end of one asking to the next: three that take all their time end before the evidence
// of the first does.
const askAgain = time.Second

// Due tells that the peers are to be asked again. One asking that comes to nothing, as a peer was busy, is followed by
// another while the last evidence holds, though each lasts for AskRound: who asks must look as soon as an asking is
// over.
func (c Contact) Due(s Standing, now time.Duration) bool {
	return (s == Asking || s == Holding) && now-c.Asked >= askAgain
}

// Standing is what a member's contact means for its process.
type Standing int

// The standings.
const (
	InTouch Standing = iota // nothing is to be done
	Asking                  // the peers are to be asked, and the process goes on
	Holding                 // the same: the registry itself is away, as the peers show
	CutOff                  // the process is to be stopped, and none may start
)

// Standing rules on a member at a moment. Evidence holds for a little; where there is none, the fence falls
// once the peers were asked after its time had come, and again when that was over, and did not show any: they may come
// to theirs a little later, and one asking may fail for a busy peer. Whatever they say, it falls after Times.Outage.
func (c Contact) Standing(t registry.Times, now time.Duration) Standing {
	silence := now - c.Heard
	switch {
	case silence >= t.Outage():
		return CutOff
	case silence < t.Silent():
		return InTouch
	case c.shown(t) && now-c.Evidence <= registry.EvidenceValid:
		return Holding
	case silence < t.Fence(), silence < t.Fence()+registry.EvidenceValid &&
		c.Asked < c.Heard+t.Fence()+registry.AskRound:
		return Asking
	}
	return CutOff
}

// shown tells that there was evidence since the last answer of the registry.
func (c Contact) shown(t registry.Times) bool { return c.Evidence >= c.Heard+t.Silent() }

// End is the moment until which the process may live if nothing more is heard of this agent: that of the dead-man timer
// of its guard.
func (c Contact) End(t registry.Times) time.Duration {
	end := c.Heard + t.Gone()
	if c.shown(t) {
		end = max(end, c.Evidence+registry.EvidenceValid+registry.FenceStop)
	}
	return min(end, c.Heard+t.Outage()+registry.EvidenceValid+registry.FenceStop)
}
