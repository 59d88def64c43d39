package consul

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
)

// askRoster asks the peer agent at an address for the packed roster of that id, on behalf of a rank. The peer waits a
// moment for a roster that it does not have yet: the error is then registry.ErrNotYet. next is the address of the peer
// to ask instead; packed is nil then.
type askRoster = func(ctx context.Context, peer, token, id string, rank int) (packed []byte, next string, err error)

// A member reads a large roster from a peer. A peer that is alive is waited for, however slow it is: on a busy network
// everybody is slow at once, and readings from the registry would make all of them slower. When no peer gives the
// roster, the readings from the registry are spread over the time that they need.
const (
	levelPatience   = 30 * time.Second // with all peers together, times the level, beside the spread
	slowPatience    = 30 * time.Second // with a peer that accepts questions and does not answer
	connectPatience = 10 * time.Second // with a peer that accepts no connection in time
	askTime         = 45 * time.Second // for one question and the roster's bytes
	mostHops        = 2                // redirects that a member follows
	mostPeers       = 3                // peers that are tried

	// Before the next question to a peer that has no roster yet, and to one that did not answer.
	notYetLow, notYet = 20 * time.Millisecond, 100 * time.Millisecond
	slowLow, slow     = time.Second, 3 * time.Second

	fallBack     = 500 * time.Millisecond // at most, before another is asked for a small roster
	registryRate = 64 << 20               // bytes of rosters that a registry gives in a second
	packs        = 6                      // a roster's bytes for each of its packed bytes
)

// fallBackSpread is the time over which the members of a gang read a roster from the registry when no peer gives it to
// any of them.
func fallBackSpread(ref registry.RosterRef, world int) time.Duration {
	bytes := float64(ref.Bytes) / packs * float64(world)
	return max(fallBack, time.Duration(bytes/registryRate*float64(time.Second)))
}

// rosterCopy is the packed roster that a member has read last, for the peers that ask for it.
type rosterCopy struct {
	ask askRoster // nil: peers are not asked

	mu      sync.Mutex
	ref     registry.RosterRef
	packed  []byte
	sources func() registry.Sources // of a seed that was asked where a rank's parent answers; nil: no seed
	changed chan struct{}           // closed when another roster is there; nil until a peer waits for it
}

// Roster reads the sealed roster that a directive names, packed, and checks it against the digest: registry.Unpack
// decodes it. In a large gang it comes from a peer, or, if no peer has it in time, from the registry.
func (s *Membership) Roster(ctx context.Context, ref registry.RosterRef) ([]byte, error) {
	if packed := s.roster.get(ref.ID); packed != nil {
		return packed, nil
	}
	d := s.Directive()
	r := rosterReader{
		ask: s.roster.ask, token: s.app.Token, log: s.gang.log,
		rank: s.gang.me.Facts.Rank(d, s.instance), world: s.gang.me.Facts.World(d),
		fromRegistry: func(ctx context.Context) ([]byte, error) { return s.gang.packed(ctx, s.gang.keys, ref) },
	}
	packed, err := r.read(ctx, ref)
	if err != nil {
		return nil, err
	}
	if ref.Seeds != "" && r.rank >= 0 && registry.Serves(r.rank, r.world) {
		s.roster.keep(ref, packed, r.rank < registry.FanOut)
	}
	return packed, nil
}

// rosterReader reads a roster on behalf of a rank.
type rosterReader struct {
	ask          askRoster // nil: peers are not asked
	fromRegistry func(ctx context.Context) ([]byte, error)
	token        string
	rank, world  int
	log          *slog.Logger
}

func (r rosterReader) read(ctx context.Context, ref registry.RosterRef) ([]byte, error) {
	packed, err := r.fromPeers(ctx, ref)
	if err == nil {
		return packed, nil
	}
	if !errors.Is(err, errNoPeers) {
		r.log.Info("roster not read from a peer", "roster", ref.ID, "err", err)
		if err := pause(ctx, jitter(0, fallBackSpread(ref, r.world))); err != nil {
			return nil, err
		}
	}
	return r.fromRegistry(ctx)
}

// errNoPeers: this member reads rosters from the registry.
var errNoPeers = errors.New("no peers to ask for a roster")

// fromPeers asks a seed, and where that sends it the parent. When the parent cannot give the roster, it asks for it in
// the parent's place; when the seed cannot, it asks another seed.
func (r rosterReader) fromPeers(ctx context.Context, ref registry.RosterRef) (packed []byte, err error) {
	if r.ask == nil || ref.Seed(r.rank, 0) == "" {
		return nil, errNoPeers
	}
	// Each level has longer than the one above, which may have to read from the registry first.
	level := time.Duration(registry.Level(r.rank))
	patience := level*(levelPatience+fallBackSpread(ref, r.world)) + jitter(0, time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w within %s", registry.ErrNotYet, patience))
	defer cancel()
	as := r.rank
	for try := range mostPeers {
		var sent bool
		if packed, sent, err = r.descend(ctx, ref, as, ref.Seed(as, try)); err == nil || ctx.Err() != nil {
			return packed, err
		}
		if sent {
			as, _ = registry.Parent(as)
		}
		r.log.Debug("a peer gave no roster", "roster", ref.ID, "err", err)
		if pause(ctx, jitter(0, fallBack)) != nil {
			return nil, err
		}
	}
	return nil, err
}

// descend asks the peer at an address in the place of a rank, and follows where it is sent; sent tells that it was.
func (r rosterReader) descend(
	ctx context.Context, ref registry.RosterRef, as int, at string,
) (packed []byte, sent bool, err error) {
	answered := time.Now()
	for hops := 0; hops <= mostHops; {
		packed, next, err := r.once(ctx, at, ref.ID, as)
		again := time.Duration(0)
		switch {
		case errors.Is(err, registry.ErrNotYet):
			answered, again = time.Now(), jitter(notYetLow, notYet)
		case time.Since(answered) < waits(err):
			again = jitter(slowLow, slow)
		case err == nil && next != "":
			at, hops, answered = next, hops+1, time.Now()
			continue
		case err == nil:
			err = ref.Verify(packed)
		}
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case again > 0:
			if err = pause(ctx, again); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, hops > 0, fmt.Errorf("ask %s for the roster: %w", at, err)
		}
		return packed, hops > 0, nil
	}
	return nil, true, fmt.Errorf("ask %s for the roster: more than %d redirects", at, mostHops)
}

func (r rosterReader) once(
	ctx context.Context, at, id string, as int,
) (packed []byte, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return r.ask(ctx, at, r.token, id, as)
}

// waits is how long a peer is waited for after an error: that it was too slow to answer, or to accept a connection. 0:
// it cannot give the roster.
func waits(err error) time.Duration {
	limit, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	if !ok || !limit.Timeout() {
		return 0
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return connectPatience // its host has died, or is very busy
	}
	return slowPatience
}

// holdRoster is how long a peer's question is held for a roster that this member does not have yet: asking again costs
// both more.
const holdRoster = 10 * time.Second

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
	c.ref, c.packed, c.sources = ref, packed, nil
	if seed {
		c.sources = sync.OnceValue(func() registry.Sources {
			all, err := ref.Sources(packed)
			if err != nil { // it was verified
				return nil
			}
			return all
		})
	}
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
	packed, sources, changed := c.now(id)
	if sources != nil {
		if next = sources().Of(rank); next != "" {
			return nil, next, nil
		}
	}
	return packed, "", changed
}

func (c *rosterCopy) now(id string) (packed []byte, sources func() registry.Sources, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.packed != nil && c.ref.ID == id {
		return c.packed, c.sources, nil
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return nil, nil, c.changed
}

// Members reads the records of instances; those without a record are left out.
func (s *Membership) Members(
	ctx context.Context, of []registry.Instance,
) (map[registry.Instance]registry.Member, error) {
	all := make(map[registry.Instance]registry.Member, len(of))
	for part := range slices.Chunk(of, mostOps) {
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
