package consul

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// snapshot is T1: one request reads all that a newcomer's decision needs. The directive's pair comes with it.
func (g *gang) snapshot(ctx context.Context, in registry.Instance) (conductor.Snapshot, *api.KVPair, error) {
	k := g.keys
	var gone []*api.KVPair
	res, err := g.calls.commit(ctx, k.look(in, g.me.Run)...)
	if err != nil {
		return conductor.Snapshot{}, nil, err
	}
	for key, pair := range res {
		if strings.HasPrefix(key, k.asks()) {
			gone = append(gone, pair)
		}
	}
	last, _, _ := g.directive.now()
	l := conductor.Snapshot{Instance: in, Now: time.Now().UTC(), Seen: last != nil}
	directive := res.at(k.directive())
	if err := read(res.at(k.app()), &l.App, &l.AppIndex); err != nil {
		return l, nil, err
	}
	if err := read(directive, &l.Directive, &l.DirectiveIndex); err != nil {
		return l, nil, err
	}
	if err := read(res.at(k.member(in)), &l.Member, &l.MemberIndex); err != nil {
		return l, nil, err
	}
	if directive != nil {
		l.DirectiveSession = directive.Session
	}
	if live := res.at(k.live(in)); live != nil {
		l.LiveSession, l.LiveInc, l.LiveIndex = live.Session, string(live.Value), live.ModifyIndex
	}
	if l.Asks, err = asksOf(gone); err != nil {
		return l, nil, err
	}
	if pair := res.at(k.checkpoint(in)); pair != nil {
		c, err := readCheckpoint(pair)
		if err != nil {
			return l, nil, err
		}
		l.Step = newest(c)
	}
	var verdictIndex uint64
	if err := read(res.at(k.verdict(g.me.Run)), &l.Verdict, &verdictIndex); err != nil {
		return l, nil, err
	}
	return l, directive, g.completeSnapshot(ctx, &l)
}

// completeSnapshot reads whether any member is alive, which matters only if the app has another run or nobody conducts.
func (g *gang) completeSnapshot(ctx context.Context, l *conductor.Snapshot) error {
	if l.Directive == nil || l.Directive.Run == g.me.Run && l.DirectiveSession != "" {
		return nil
	}
	names, err := g.calls.names(ctx, g.keys.lives(), "")
	l.AnyLive = len(names) > 0
	return err
}

// read decodes a pair that may be missing.
func read[T any](pair *api.KVPair, into **T, index *uint64) error {
	if pair == nil {
		return nil
	}
	v, err := decode[T](pair.Key, pair.Value)
	if err != nil {
		return err
	}
	*into, *index = &v, pair.ModifyIndex
	return nil
}

func asksOf(pairs []*api.KVPair) ([]registry.Ask, error) {
	var asks []registry.Ask
	// In the order in which they were made: of two flexes the first may be served, and be there when the second comes.
	pairs = slices.SortedStableFunc(slices.Values(pairs), func(a, b *api.KVPair) int {
		return cmp.Compare(a.CreateIndex, b.CreateIndex)
	})
	for _, p := range pairs {
		a, err := decode[registry.Ask](p.Key, p.Value)
		if err != nil {
			return nil, err
		}
		asks = append(asks, a)
	}
	return asks, nil
}

func newest(c registry.Checkpoint) int64 {
	var step int64
	for _, s := range c.Steps {
		step = max(step, s.Step)
	}
	return step
}

// lives reads which indexes are held.
func (c *Client) lives(ctx context.Context, k keys) (map[registry.Instance]bool, error) {
	names, err := c.calls.names(ctx, k.lives(), "")
	if err != nil {
		return nil, err
	}
	return setOf(instancesAt(k.lives(), names)), nil
}

func setOf(in []registry.Instance) map[registry.Instance]bool {
	set := make(map[registry.Instance]bool, len(in))
	for _, i := range in {
		set[i] = true
	}
	return set
}

// hint is where a newcomer without an index begins to look: the number at the end of the launcher's name for its
// container, else a number of its own.
func hint(m registry.Member) uint64 {
	digits := m.ContainerID[len(strings.TrimRight(m.ContainerID, "0123456789")):]
	var n uint64
	for _, c := range []byte(digits) {
		n = n*10 + uint64(c-'0')
	}
	if digits != "" {
		return n
	}
	for _, c := range []byte(m.Inc) {
		n = n*31 + uint64(c)
	}
	return n
}

// rankOf is the rank of an instance: its position in the gang, in the order of the facts.
func rankOf(f conductor.Facts, d registry.Directive, in registry.Instance) int {
	before := 0
	for _, c := range f.Components {
		if c.Name == in.Component {
			return before + in.Index
		}
		n, ok := d.Counts[c.Name]
		if !ok {
			n = c.Count
		}
		before += n
	}
	return before
}

// flexed are the instances that may be claimed when a flex has changed the counts, component by component.
func flexed(all []registry.Instance, d registry.Directive) []registry.Instance {
	now := d.Claimable()
	var out []registry.Instance
	seen := map[string]bool{}
	for _, in := range all {
		if seen[in.Component] {
			continue
		}
		seen[in.Component] = true
		for _, o := range now {
			if o.Component == in.Component {
				out = append(out, o)
			}
		}
	}
	if len(out) == 0 {
		return all // a verdict, or no index for this agent: the snapshot will show it
	}
	return out
}

// claimable are the instances that a newcomer may claim.
func claimable(me conductor.Newcomer) []registry.Instance {
	if me.Instance != nil {
		return []registry.Instance{*me.Instance}
	}
	return slices.Clone(me.Claimable)
}

// Live are the indexes of an app that agents hold. It is cheap: it reads no records.
func (c *Client) Live(ctx context.Context, app string) (map[registry.Instance]bool, error) {
	return c.lives(ctx, keysOf(app))
}
