package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
)

// How members try to reach each other, between the seal of a roster and their start. A gang that is in order pays a round
// trip for it; one whose hosts do not answer starts two seconds later, once: who did not answer is then tried beside the run.
const (
	mostTried    = 64              // hosts, at once
	tryPatience  = 2 * time.Second // for all of them
	triedAgain   = 30 * time.Second
	tellPatience = 10 * time.Second // for the registry to take what was found
)

// Kinds of warnings that come of it.
const (
	warnUnreachable = "unreachable"
	warnTogether    = "together"
)

// neighbours are what this agent knows of the hosts of the others.
type neighbours struct {
	*agent

	mu      sync.Mutex
	reached map[string]bool // by incarnation; asked once
	roster  registry.Roster
	missing []registry.Row
	whys    map[string]string // of those, by incarnation
	found   []registry.Finding
	owed    bool                                            // the registry was not told of what is found now
	write   func(context.Context, []registry.Finding) error // into the member's record
	logged  [2]string                                       // whom the log has last named as not reached, and as beside this one
	watched bool                                            // somebody tries again and tells the registry
	news    chan struct{}                                   // what was found has changed
}

// meet tries to reach the hosts of a roster that were not reached yet, and looks who else is on this one. It holds the
// start up for as long as that takes, tryPatience at most, and fails nothing: an address may be of no use to the job.
func (n *neighbours) meet(ctx context.Context, roster registry.Roster, in registry.Instance) {
	n.mu.Lock()
	rows, known := n.untried(registry.PeersToTry(roster, in, mostTried))
	before := n.whys
	n.mu.Unlock()
	missing, whys := n.try(ctx, rows)
	for _, row := range known {
		missing, whys[row.Inc] = append(missing, row), before[row.Inc]
	}
	slices.SortFunc(missing, func(a, b registry.Row) int { return a.Rank - b.Rank })
	if ctx.Err() != nil { // another directive is there
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.roster = roster
	n.keep(in, missing, whys)
}

// untried is called with the mutex held: who was not tried before, and whom watch tries again, which holds up no start.
func (n *neighbours) untried(all []registry.Row) (rows, known []registry.Row) {
	for _, row := range all {
		missed := slices.ContainsFunc(n.missing, func(m registry.Row) bool { return m.Inc == row.Inc && m.Peer == row.Peer })
		switch {
		case n.reached[row.Inc]:
		case missed:
			known = append(known, row)
		default:
			rows = append(rows, row)
		}
	}
	return rows, known
}

// try asks the agents of rows, and returns those who do not answer, with why.
func (n *neighbours) try(ctx context.Context, rows []registry.Row) ([]registry.Row, map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	var missing []registry.Row
	whys := map[string]string{}
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, row := range rows {
		work.Go(func() {
			err := n.answers(ctx, row)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missing, whys[row.Inc] = append(missing, row), whyNot(err)
			}
		})
	}
	work.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, row := range rows {
		if whys[row.Inc] == "" {
			n.reached[row.Inc] = true
		}
	}
	slices.SortFunc(missing, func(a, b registry.Row) int { return a.Rank - b.Rank })
	return missing, whys
}

// answers tells whether the very agent of a row answers at the address that its host has in the exports.
func (n *neighbours) answers(ctx context.Context, row registry.Row) error {
	switch {
	case row.Peer == "" && row.OnLoopback():
		return errors.New("a loopback address, on another machine than this")
	case row.Peer == "": // its agent listens for nobody: nothing is known
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", row.Peer)
	if err != nil {
		return err
	}
	_ = conn.Close() // nothing was said
	c := status.DialPeer(row.Peer, n.seatNow().Token())
	defer c.Close()
	st, err := c.State(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded): // somebody is there, and busy
		return nil
	case err != nil:
		return err
	case st.App != n.id.appID || st.Instance.Instance != row.Instance.String():
		return fmt.Errorf("%s of %s answers there", st.Instance.Instance, st.App)
	}
	return nil
}

// whyNot is the last word of a chain of errors: what the kernel or the peer said.
func whyNot(err error) string {
	var wait net.Error
	if errors.As(err, &wait) && wait.Timeout() {
		return fmt.Sprintf("no answer within %s", tryPatience)
	}
	text := short(err.Error())
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text = text[at+2:]
	}
	return text
}

// keep is called with the mutex held. It tells what is new, and what is over.
func (n *neighbours) keep(in registry.Instance, missing []registry.Row, whys map[string]string) {
	n.missing, n.whys = missing, whys
	before := n.found
	n.found = nil
	now := stamp(time.Now())
	var lines []string
	for _, row := range missing {
		addr := hostOfRow(row)
		n.found = append(n.found, registry.Finding{Kind: registry.NotReached, About: row.Instance, Inc: row.Inc, Addr: addr, Why: whys[row.Inc], Since: now})
		lines = append(lines, fmt.Sprintf("%s at %s (%s)", row.Instance, addr, whys[row.Inc]))
	}
	var beside []string
	if own, ok := n.roster.Row(in); ok && n.apart(in) {
		for _, row := range n.roster.SharesHost(in) {
			beside = append(beside, row.Instance.String())
		}
		if len(beside) > 0 {
			n.found = append(n.found, registry.Finding{Kind: registry.NotApart, About: in, Inc: own.Inc, Addr: n.alloc.Host, Why: strings.Join(beside, ", "), Since: now})
		}
	}
	for i, f := range n.found { // what lasts has begun before
		if at := slices.IndexFunc(before, func(b registry.Finding) bool { return b.Kind == f.Kind && b.About == f.About && b.Inc == f.Inc }); at >= 0 {
			n.found[i].Since = before[at].Since
		}
	}
	n.tell(lines, beside)
	if !slices.Equal(before, n.found) {
		n.owed = true
		n.announce()
	}
}

// tell has people know on the terminal, in events.jsonl, in status and in the log. Of what is tried again
// and again the log has what has changed.
func (n *neighbours) tell(missing, beside []string) {
	now := [2]string{strings.Join(missing, ", "), strings.Join(beside, ", ")}
	before := n.logged
	n.logged = now
	if peers := now[0]; peers != "" {
		n.warn(warnUnreachable, fmt.Sprintf("from %s the agents of these cannot be reached: %s; %s", n.alloc.Host, peers, reachRemedy))
		if peers != before[0] {
			n.log.Warn("peers cannot be reached", "from", n.alloc.Host, "peers", peers, "remedy", reachRemedy)
		}
	} else {
		n.mended(warnUnreachable, "the agents of all peers' hosts answer")
	}
	if members := now[1]; members != "" {
		n.warn(warnTogether, besideText(n.alloc.Host, members))
		if members != before[1] {
			n.log.Warn("members share a host", "host", n.alloc.Host, "members", members)
		}
	} else {
		n.mended(warnTogether, "no other of its component is on this host any more")
	}
}

// reachRemedy is what would do.
const reachRemedy = "give their agents --host with an address that other hosts reach, or open the ports of --ports between the hosts"

func besideText(host, others string) string {
	return fmt.Sprintf("shares %s with %s, which muster.spread=host or yarn.component.placement.policy forbids; have the launcher place them apart", host, others)
}

// apart tells that each of a component is to be on a host of its own. Who runs a whole gang on one machine has chosen so.
func (n *neighbours) apart(in registry.Instance) bool {
	c := n.app.Component(in.Component)
	return c != nil && c.Limits.Placement&appdef.PlacedApart != 0 && !strings.HasPrefix(n.registryAddr, "unix:")
}

// announce wakes who tells the registry; with the mutex held.
func (n *neighbours) announce() {
	if !n.watched {
		n.watched = true
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			n.watch(ctx)
		}()
		n.atEnd(func() {
			cancel()
			<-done
		})
	}
	select {
	case n.news <- struct{}{}:
	default: // it is awake
	}
}

// watch writes what was found into the member's record, again where the registry did not take it, and tries the hosts again
// until nothing is.
func (n *neighbours) watch(ctx context.Context) {
	again := time.NewTicker(triedAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.news:
			n.publish(ctx)
		case <-again.C:
			n.retry(ctx)
			n.publish(ctx)
		}
	}
}

func (n *neighbours) publish(ctx context.Context) {
	n.mu.Lock()
	found, owed := slices.Clone(n.found), n.owed
	n.owed = false // what is found meanwhile is owed again
	n.mu.Unlock()
	if !owed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	room := gangRoom{n.agent}
	if room.ok("tell what was found of the peers", n.write(ctx, found)) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owed = true
}

// record writes findings into the member's record.
func (n *neighbours) record(ctx context.Context, found []registry.Finding) error {
	return n.seatNow().Publish(ctx, func(m *registry.Member) { m.Found = found })
}

func (n *neighbours) retry(ctx context.Context) {
	n.mu.Lock()
	rows, gen := n.missing, n.roster.Gen
	n.mu.Unlock()
	if len(rows) == 0 {
		return
	}
	missing, whys := n.try(ctx, rows)
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() == nil && n.roster.Gen == gen {
		n.keep(n.seatNow().Instance(), missing, whys)
	}
}

func hostOfRow(row registry.Row) string {
	if row.Peer != "" {
		return row.Peer
	}
	return row.Addr
}
