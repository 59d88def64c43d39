package conductor

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// A member without contact to the registry cannot tell whether the registry is down or only this host is cut off
// (doc/protocol.md). It asks its peers. If more than half of the gang has no contact either, all continue. Otherwise
// the member stops its process before the conductor gives its place away. The conductor's part is in losses: it waits
// longer while more than half of the gang is unreachable, because those members continue.

// Moments in this file are durations since some moment of the past, on a clock that counts suspended time
// (CLOCK_BOOTTIME). Wall time can be set, and a monotonic clock sleeps with its machine.

// Silence is a member's answer when a peer asks how long it has had no contact to the registry.
type Silence struct {
	registry.Instance
	Inc    string
	Gen    int           // the generation that the member acknowledged
	For    time.Duration // since it sent its last renewal that was answered
	Fenced bool          // it has stopped its process for this reason, or is stopping it
}

// Panel is the set of peers that a member asks, fixed for a roster.
type Panel struct {
	gen     int
	rows    []registry.Row  // the peers to ask
	alone   map[string]bool // components whose instances are replaced alone: their rows outlive their agents
	own     int             // 1 if the asker is a member that counts itself
	sampled bool
}

// A larger gang asks a sample of this size, chosen by a hash of the asker, and requires a larger share of silent peers.
// When at most half of the gang is cut off, a sample of 160 shows three quarters of silent peers to any of the members
// that are cut off with a probability of less than 1e-6, in a gang of up to 20,000 (doc/performance.md).
const (
	askedAtMost           = 160
	sampleNum, sampleDeno = 3, 4
)

// NewPanel is the panel of member me in the sealed roster: all instances that the gang waits for, no services.
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

// sample keeps peers in the order of a digest: neighbours in the gang often share a rack, and are cut off together.
func (p *Panel) sample(me registry.Instance) {
	type drawn struct {
		order [sha256.Size]byte
		row   registry.Row
	}
	all := make([]drawn, len(p.rows))
	for i, row := range p.rows {
		all[i] = drawn{sha256.Sum256([]byte(me.String() + " " + row.Instance.String())), row}
	}
	slices.SortFunc(all, func(a, b drawn) int { return bytes.Compare(a.order[:], b.order[:]) })
	p.rows, p.own, p.sampled = make([]registry.Row, askedAtMost), 0, true
	for i := range p.rows {
		p.rows[i] = all[i].row
	}
}

// Rows are the peers to ask, all at the same moment.
func (p Panel) Rows() []registry.Row { return p.rows }

// Movers are the peers whose agents may answer elsewhere than their rows say: a member addressed by name keeps its row
// wherever it runs.
func (p Panel) Movers(app string) []registry.Instance {
	var all []registry.Instance
	for _, row := range p.rows {
		if p.alone[row.Component] && byName(row, app) {
			all = append(all, row.Instance)
		}
	}
	return all
}

// At is the panel with the addresses that the members' records give for their agents.
func (p Panel) At(records map[registry.Instance]registry.Member) Panel {
	p.rows = slices.Clone(p.rows)
	for i, row := range p.rows {
		if m, ok := records[row.Instance]; ok && holds(m) && m.Peer != "" {
			p.rows[i].Peer, p.rows[i].API = m.Peer, m.API
		}
	}
	return p
}

// Evidence tells whether the answers to one question show that the registry itself is unreachable: together with the
// asker, more than half of all members are silent. These do not count as silent: a peer that does not answer, an answer
// of another incarnation than the row's, and a fenced member, which has given up already. silent and all are for
// people.
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

// hears tells whether an answer comes from the row's own member. A member that is replaced alone keeps its row.
func (p Panel) hears(row registry.Row, a Silence) bool {
	return a.Instance == row.Instance && a.Gen == p.gen && (a.Inc == row.Inc || p.alone[row.Component])
}

// Contact is what a member knows about its own contact to the registry, in moments.
type Contact struct {
	Heard    time.Duration // when it sent its last renewal that was answered
	Evidence time.Duration // when its last question that gave evidence began; 0: never
	Asked    time.Duration // when its last finished question to the peers began; 0: never
}

// askAgain is the time from the begin of one question to the begin of the next. A question that takes longer is
// followed at once. Three that take AskRound each end before the evidence of the first expires.
const askAgain = time.Second

// Due tells whether to ask the peers again. If one question fails because a peer is busy, another follows while the
// last evidence holds, although each may take AskRound. So the caller must check as soon as a question is over.
func (c Contact) Due(s Standing, now time.Duration) bool {
	return (s == Asking || s == Holding) && now-c.Asked >= askAgain
}

// Standing is what a member's contact to the registry means for its process.
type Standing int

// The standings.
const (
	InTouch Standing = iota // nothing to do
	Asking                  // ask the peers; the process continues
	Holding                 // ask the peers; the process continues, because peers show that the registry is unreachable
	CutOff                  // stop the process, and start none
)

// Standing decides about a member at a moment. Evidence holds for a short time. Without evidence the member is cut off
// when a question that began at least AskRound after the fence time has ended, and EvidenceValid after the fence time
// at the latest: peers may notice the outage a little later, and one question may fail for a busy peer. After
// Times.Outage the member is cut off whatever the peers say.
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

// shown tells whether there was evidence since the last answer of the registry.
func (c Contact) shown(t registry.Times) bool { return c.Evidence >= c.Heard+t.Silent() }

// End is the moment until which the process may live without further contact: the guard's dead-man timer is set to it.
func (c Contact) End(t registry.Times) time.Duration {
	end := c.Heard + t.Gone()
	if c.shown(t) {
		end = max(end, c.Evidence+registry.EvidenceValid+registry.FenceStop)
	}
	return min(end, c.Heard+t.Outage()+registry.EvidenceValid+registry.FenceStop)
}
