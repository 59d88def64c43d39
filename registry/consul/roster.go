package consul

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
)

// askRoster asks the peer agent at an address for the packed roster of that id, on behalf of a rank. The peer waits a
// moment for a roster that it does not have yet: the error is then registry.ErrNotYet. next is the address of the peer
// to ask instead; packed is nil then.
type askRoster = func(ctx context.Context, peer, token, id string, rank int) (packed []byte, next string, err error)

// How long a member tries to get the roster from its peers. Each level of the tree has longer than the one above, which
// may have to fall back to the registry first.
const (
	levelPatience     = 10 * time.Second
	notYetLow, notYet = 20 * time.Millisecond, 100 * time.Millisecond // before the next question to a peer
	mostHops          = 2                                             // redirects that a member follows
	fallBack          = 500 * time.Millisecond                        // at most, before the registry is asked instead
)

// rosterCopy is the packed roster that a member has read last, for the peers that ask for it.
type rosterCopy struct {
	ask askRoster // nil: peers are not asked

	mu      sync.Mutex
	ref     registry.RosterRef
	packed  []byte
	seed    bool
	decoded *registry.Roster // of a seed that was asked where a rank's parent answers
	changed chan struct{}    // closed when another roster is there; nil until a peer waits for it
}

// Roster reads the sealed roster that a directive names, packed, and checks it against the digest: registry.Unpack
// decodes it. In a large gang it comes from a peer, or, if no peer has it in time, from the registry.
func (s *Membership) Roster(ctx context.Context, ref registry.RosterRef) ([]byte, error) {
	if packed := s.roster.get(ref.ID); packed != nil {
		return packed, nil
	}
	d := s.Directive()
	rank, world := s.gang.me.Facts.Rank(d, s.instance), s.gang.me.Facts.World(d)
	packed, err := s.fromPeers(ctx, ref, rank)
	if err != nil {
		if !errors.Is(err, errNoPeers) {
			s.gang.log.Info("roster not read from a peer", "roster", ref.ID, "err", err)
			if err := pause(ctx, jitter(0, fallBack)); err != nil {
				return nil, err
			}
		}
		if packed, err = s.gang.packed(ctx, s.gang.keys, ref); err != nil {
			return nil, err
		}
	}
	if ref.Seeds != "" && rank >= 0 && registry.Serves(rank, world) {
		s.roster.keep(ref, packed, rank < registry.FanOut)
	}
	return packed, nil
}

// errNoPeers: this member reads rosters from the registry.
var errNoPeers = errors.New("no peers to ask for a roster")

func (s *Membership) fromPeers(ctx context.Context, ref registry.RosterRef, rank int) ([]byte, error) {
	at := ref.Seed(rank)
	if s.roster.ask == nil || at == "" {
		return nil, errNoPeers
	}
	patience := time.Duration(registry.Level(rank))*levelPatience + jitter(0, time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w within %s", registry.ErrNotYet, patience))
	defer cancel()
	for hops := 0; hops <= mostHops; {
		packed, next, err := s.roster.ask(ctx, at, s.app.Token, ref.ID, rank)
		switch {
		case errors.Is(err, registry.ErrNotYet) && ctx.Err() == nil:
			if err := pause(ctx, jitter(notYetLow, notYet)); err != nil {
				return nil, fmt.Errorf("ask %s for the roster: %w", at, err)
			}
		case err != nil:
			return nil, fmt.Errorf("ask %s for the roster: %w", at, err)
		case next != "":
			at, hops = next, hops+1
		default:
			if err := ref.Verify(packed); err != nil {
				return nil, fmt.Errorf("roster of %s: %w", at, err)
			}
			return packed, nil
		}
	}
	return nil, fmt.Errorf("ask %s for the roster: more than %d redirects", at, mostHops)
}

// holdRoster is how long a peer's question is held for a roster that this member does not have yet: asking again costs
// both more.
const holdRoster = 3 * time.Second

// GiveRoster answers a peer of that rank: with the packed roster, or with the address of the peer to ask instead. It
// waits for holdRoster until this member has the roster; the error is then registry.ErrNotYet. A member that serves no
// rank never has it.
func (s *Membership) GiveRoster(ctx context.Context, id string, rank int) (packed []byte, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, holdRoster)
	defer cancel()
	for {
		packed, next, changed := s.roster.give(id, rank)
		if packed != nil || next != "" {
			return packed, next, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, "", fmt.Errorf("roster %s: %w", id, registry.ErrNotYet)
		}
	}
}

func (c *rosterCopy) keep(ref registry.RosterRef, packed []byte, seed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ref, c.packed, c.seed, c.decoded = ref, packed, seed, nil
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

func (c *rosterCopy) get(id string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ref.ID != id {
		return nil
	}
	return c.packed
}

// give is the answer to a peer of a rank. Without one, changed closes when another roster is there.
func (c *rosterCopy) give(id string, rank int) (packed []byte, next string, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packed == nil || c.ref.ID != id {
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		return nil, "", c.changed
	}
	if c.seed && c.decoded == nil {
		r, _, err := registry.Unpack(c.ref, c.packed)
		if err != nil { // it was verified
			return c.packed, "", nil
		}
		c.decoded = &r
	}
	if c.seed {
		if next = c.decoded.Source(rank); next != "" {
			return nil, next, nil
		}
	}
	return c.packed, "", nil
}

// Members reads the records of instances; those without a record are left out.
func (s *Membership) Members(
	ctx context.Context, of []registry.Instance,
) (map[registry.Instance]registry.Member, error) {
	all := make(map[registry.Instance]registry.Member, len(of))
	for part := range slices.Chunk(of, lookKeys) {
		names := make([]string, 0, len(part))
		for _, in := range part {
			names = append(names, s.gang.keys.member(in))
		}
		res, err := s.gang.calls.readKeys(ctx, byDefault, names...)
		if err != nil {
			return nil, err
		}
		for i, in := range part {
			pair := res.at(names[i])
			if pair == nil {
				continue
			}
			m, err := decode[registry.Member](pair.Key, pair.Value)
			if err != nil {
				return nil, err
			}
			all[in] = m
		}
	}
	return all, nil
}
