package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/status"
)

// How members try to reach each other, between the seal of a roster and their start. A healthy gang pays a round trip
// for it; one with unreachable hosts starts two seconds later, once: those hosts are then tried again beside the run.
const (
	mostProbed     = 64              // hosts, at once
	probePatience  = 2 * time.Second // for all of them
	probeAgain     = 30 * time.Second
	recordPatience = 10 * time.Second // for the registry to take what was found
)

// probe is what this agent knows of the hosts of its peers.
type probe struct {
	cfg  probeConfig
	news chan struct{} // what was found has changed
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	self    registry.Instance
	reached map[string]bool // by incarnation; asked once
	roster  registry.Roster
	missing []registry.Row
	whys    map[string]string // of those, by incarnation
	found   []registry.Finding
	owed    bool      // found is not in the registry yet
	logged  [2]string // the peers that the log has last named as unreachable, and as beside this one
}

type probeConfig struct {
	appID, host string
	apart       func(registry.Instance) bool // each of its component is to be on a host of its own
	token       func() string                // of the run
	record      func(context.Context, []registry.Finding) error
	warn        func(kind, text string)
	mended      func(kind, text string)
	log         *slog.Logger
}

// meet tries to reach the hosts of a roster that were not reached yet, and looks which members share this one. It
// delays the start for probePatience at most, and fails nothing: an address may be of no use to the job.
func (p *probe) meet(ctx context.Context, roster registry.Roster, in registry.Instance) {
	p.mu.Lock()
	rows, known := p.untried(registry.PeersToTry(roster, in, mostProbed))
	before := p.whys
	p.mu.Unlock()
	missing, whys := p.try(ctx, rows)
	for _, row := range known {
		missing, whys[row.Inc] = append(missing, row), before[row.Inc]
	}
	slices.SortFunc(missing, func(a, b registry.Row) int { return a.Rank - b.Rank })
	if ctx.Err() != nil { // another directive is there
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roster, p.self = roster, in
	if p.keep(missing, whys) {
		p.publishSoon(ctx)
	}
}

// untried is called with the mutex held: the rows that were not tried before, and those that watch tries again, which
// delay no start.
func (p *probe) untried(all []registry.Row) (rows, known []registry.Row) {
	for _, row := range all {
		same := func(m registry.Row) bool { return m.Inc == row.Inc && m.Peer == row.Peer }
		missed := slices.ContainsFunc(p.missing, same)
		switch {
		case p.reached[row.Inc]:
		case missed:
			known = append(known, row)
		default:
			rows = append(rows, row)
		}
	}
	return rows, known
}

// try asks the agents of rows, and returns those that do not answer, with why.
func (p *probe) try(ctx context.Context, rows []registry.Row) ([]registry.Row, map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	var missing []registry.Row
	whys := map[string]string{}
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, row := range rows {
		work.Go(func() {
			err := p.ask(ctx, row)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missing, whys[row.Inc] = append(missing, row), whyNot(err)
			}
		})
	}
	work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range rows {
		if whys[row.Inc] == "" {
			p.reached[row.Inc] = true
		}
	}
	slices.SortFunc(missing, func(a, b registry.Row) int { return a.Rank - b.Rank })
	return missing, whys
}

// ask tells whether the very agent of a row answers at the address that its host has in the exports.
func (p *probe) ask(ctx context.Context, row registry.Row) error {
	switch {
	case row.Peer == "" && row.OnLoopback():
		return errors.New("a loopback address, on another machine than this")
	case row.Peer == "": // its agent answers no other host: nothing is known
		return nil
	}
	address, key := registry.SplitPeer(row.Peer)
	if key == "" { // of an earlier build, which answers without TLS only: nothing is known
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	_ = conn.Close() // nothing was sent
	c := status.DialPeer(row.Peer, p.cfg.token())
	defer c.Close()
	st, err := c.State(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded): // an agent is there, and busy
		return nil
	case err != nil:
		return err
	case st.App != p.cfg.appID || st.Instance.Instance != row.Instance.String():
		return fmt.Errorf("%s of %s answers there", st.Instance.Instance, st.App)
	}
	return nil
}

// mostWhy bounds a reason, in bytes.
const mostWhy = 320

// whyNot is the end of a chain of errors: what the kernel or the peer said.
func whyNot(err error) string {
	var wait net.Error
	if errors.As(err, &wait) && wait.Timeout() {
		return fmt.Sprintf("no answer within %s", probePatience)
	}
	text := err.Error()
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text = text[at+2:]
	}
	return strings.ToValidUTF8(text[max(0, len(text)-mostWhy):], "")
}

// publishSoon wakes watch, which begins with the first finding; with the mutex held.
func (p *probe) publishSoon(ctx context.Context) {
	if p.stop == nil {
		ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives the reading of the roster
		p.work.Go(func() { p.watch(ctx) })
	}
	p.wake()
}

func (p *probe) wake() {
	select {
	case p.news <- struct{}{}:
	default: // watch is awake
	}
}

func (p *probe) close() {
	p.mu.Lock()
	stop := p.stop
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
	p.work.Wait()
}

// watch writes what was found into the member's record, again where the registry did not take it, and tries the hosts
// again until no finding is left.
func (p *probe) watch(ctx context.Context) {
	again := time.NewTicker(probeAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.news:
			p.publish(ctx)
		case <-again.C:
			p.retry(ctx)
			p.publish(ctx)
		}
	}
}

func (p *probe) publish(ctx context.Context) {
	p.mu.Lock()
	found, owed := slices.Clone(p.found), p.owed
	p.owed = false // what is found meanwhile is owed again
	p.mu.Unlock()
	if !owed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	if written(p.cfg.log, "record what was found of the peers", p.cfg.record(ctx, found)) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owed = true
}

func (p *probe) retry(ctx context.Context) {
	p.mu.Lock()
	rows, gen := p.missing, p.roster.Gen
	p.mu.Unlock()
	if len(rows) == 0 {
		return
	}
	missing, whys := p.try(ctx, rows)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil && p.roster.Gen == gen && p.keep(missing, whys) {
		p.wake()
	}
}
