package member

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
)

// Kinds of warnings about the peers' hosts.
const (
	WarnUnreachable = "unreachable"
	WarnTogether    = "together"
)

// ReachRemedy is what mends an agent that its peers cannot reach.
const ReachRemedy = "give their agents --host with an address that other hosts reach, " +
	"or open the ports of --ports between the hosts"

// TogetherText warns of a member that shares its host with others although each is to have its own.
func TogetherText(host, others string) string {
	return fmt.Sprintf("shares %s with %s, which muster.spread=host or yarn.component.placement.policy forbids; "+
		"have the launcher place them apart", host, others)
}

// keep takes what was found, with the mutex held, and shows the user what is new and what is over. It returns whether
// the registry must get it.
func (p *probe) keep(missing []registry.Row, whys map[string]string) bool {
	p.missing, p.whys = missing, whys
	before := p.found
	p.found = nil
	now := status.Stamp(time.Now())
	var lines []string
	for _, row := range missing {
		addr, why := row.Addr, whys[row.Inc]
		if row.Peer != "" {
			addr, _ = registry.SplitPeer(row.Peer)
		}
		p.found = append(p.found, registry.Finding{
			Kind: registry.NotReached, About: row.Instance, Inc: row.Inc, Addr: addr, Why: why, Since: now,
		})
		lines = append(lines, fmt.Sprintf("%s at %s (%s)", row.Instance, addr, why))
	}
	var beside []string
	if own, ok := p.roster.Row(p.self); ok && p.cfg.apart(p.self) {
		for _, row := range p.roster.SharesHost(p.self) {
			beside = append(beside, row.Instance.String())
		}
		if len(beside) > 0 {
			p.found = append(p.found, registry.Finding{
				Kind: registry.NotApart, About: p.self, Inc: own.Inc, Addr: p.cfg.host,
				Why: strings.Join(beside, ", "), Since: now,
			})
		}
	}
	for i, f := range p.found { // what lasts has begun before
		same := func(b registry.Finding) bool { return b.Kind == f.Kind && b.About == f.About && b.Inc == f.Inc }
		if at := slices.IndexFunc(before, same); at >= 0 {
			p.found[i].Since = before[at].Since
		}
	}
	p.show(lines, beside)
	if slices.Equal(before, p.found) {
		return false
	}
	p.owed = true
	return true
}

// show shows the user what was found, on the terminal, in events.jsonl, in status and in the log. Of what is tried
// again and again the log has what has changed.
func (p *probe) show(missing, beside []string) {
	now := [2]string{strings.Join(missing, ", "), strings.Join(beside, ", ")}
	before := p.logged
	p.logged = now
	if peers := now[0]; peers != "" {
		text := fmt.Sprintf("from %s the agents of these cannot be reached: %s; %s", p.cfg.host, peers, ReachRemedy)
		p.cfg.warn(WarnUnreachable, text)
		if peers != before[0] {
			p.cfg.log.Warn("peers unreachable", "from", p.cfg.host, "peers", peers, "remedy", ReachRemedy)
		}
	} else {
		p.cfg.mended(WarnUnreachable, "the agents of all peers' hosts answer")
	}
	if members := now[1]; members != "" {
		p.cfg.warn(WarnTogether, TogetherText(p.cfg.host, members))
		if members != before[1] {
			p.cfg.log.Warn("members share a host", "host", p.cfg.host, "members", members)
		}
	} else {
		p.cfg.mended(WarnTogether, "no other of its component is on this host any more")
	}
}

// recordFindings writes what was found of the peers into this member's record.
func (m *Member) recordFindings(ctx context.Context, found []registry.Finding) error {
	return m.Membership().Publish(ctx, func(r *registry.Member) { r.Found = found })
}

// mustBeApart tells that each instance of a component is to be on a host of its own. Whoever runs a whole gang on one
// machine has chosen so.
func (m *Member) mustBeApart(in registry.Instance) bool {
	c := m.cfg.App.Component(in.Component)
	return c != nil && c.Limits.Placement&appdef.PlacedApart != 0 && !onThisMachine(m.cfg.Registry)
}

// onThisMachine tells that the registry, and so the whole gang, is on this machine.
func onThisMachine(at registry.Address) bool {
	_, socket := at.Socket()
	return socket
}
