package consul

import (
	"context"
	"fmt"

	"github.com/muster-agent/muster/registry"
)

// Roster reads the sealed roster that a directive names, and its file's bytes, checked against the digest. Any server
// may answer, because the content names the key. If a server lacks it or has a part of it, the leader is asked.
func (s *Membership) Roster(ctx context.Context, ref registry.RosterRef) (registry.Roster, []byte, error) {
	return s.gang.roster(ctx, s.gang.keys, ref)
}

func (c *Client) roster(ctx context.Context, k keys, ref registry.RosterRef) (registry.Roster, []byte, error) {
	r, file, err := c.rosterBy(ctx, k, ref, stale)
	if err == nil {
		return r, file, nil
	}
	return c.rosterBy(ctx, k, ref, byDefault)
}

func (c *Client) rosterBy(
	ctx context.Context, k keys, ref registry.RosterRef, how consistency,
) (registry.Roster, []byte, error) {
	chunks := make([][]byte, 0, max(ref.Chunks, 1))
	for n := range max(ref.Chunks, 1) {
		chunk, err := c.calls.raw(ctx, k.roster(ref.ID, n), how)
		if err != nil {
			return registry.Roster{}, nil, err
		}
		if chunk == nil {
			return registry.Roster{}, nil, fmt.Errorf("roster %s: chunk %d of %d is not there", ref.ID, n+1, ref.Chunks)
		}
		chunks = append(chunks, chunk)
	}
	return registry.Unpack(ref, chunks)
}

// Members reads the records of at most 128 instances; instances without a record are left out.
func (s *Membership) Members(
	ctx context.Context, of []registry.Instance,
) (map[registry.Instance]registry.Member, error) {
	names := make([]string, 0, len(of))
	for _, in := range of {
		names = append(names, s.gang.keys.member(in))
	}
	res, err := s.gang.calls.readKeys(ctx, byDefault, names...)
	if err != nil {
		return nil, err
	}
	all := make(map[registry.Instance]registry.Member, len(of))
	for i, in := range of {
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
	return all, nil
}
