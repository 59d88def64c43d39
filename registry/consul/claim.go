package consul

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry/conductor"
)

// claim clears the rest of the old holder, destroys its session (T8) and takes the index (T3). If the old holder was
// the conductor, its lock goes too.
func (j *joining) claim(ctx context.Context, d conductor.Claim, look conductor.Snapshot) (*Membership, error) {
	if d.Clear != nil && look.Member != nil && j.hooks.Clean != nil {
		if err := j.hooks.Clean(ctx, d.Instance, *look.Member); err != nil {
			return nil, fmt.Errorf("clear what is left of %s: %w", d.Instance, err)
		}
	}
	if d.Evict != "" {
		if err := j.calls.destroySession(ctx, d.Evict); err != nil {
			return nil, err
		}
	}
	if j.session == "" {
		j.born = boottime()
		session, err := j.makeSession(ctx, d.Instance.String(), api.SessionBehaviorDelete)
		if err != nil {
			return nil, err
		}
		j.session = session
	}
	s, err := j.commitClaim(ctx, d, look)
	if s != nil && d.Unseat != "" {
		_ = j.calls.destroySession(ctx, d.Unseat) // it ends by itself
	}
	return s, err
}

// commitClaim is T3.
func (j *joining) commitClaim(ctx context.Context, d conductor.Claim, look conductor.Snapshot) (*Membership, error) {
	k, in := j.keys, d.Instance
	res, err := j.calls.commit(ctx, k.claim(d, j.session, encode(d.Record), look.Deserted())...)
	switch {
	case err == nil:
		return j.newMembership(d, look, res.at(k.directive()), res.index(k.member(in)))
	case isUnknown(err):
		return j.verifyClaim(ctx, d, look, err)
	case isRefusal(err):
		// The session of a newcomer that waited long may have ended: always create a fresh one.
		session := j.session
		j.session = ""
		_ = j.calls.destroySession(ctx, session) // it ends by itself
	}
	return nil, err
}

// verifyClaim finds out whether a claim succeeded whose answer was lost: only this agent knows its session and
// incarnation.
func (j *joining) verifyClaim(
	ctx context.Context, d conductor.Claim, look conductor.Snapshot, lost error,
) (*Membership, error) {
	k, in := j.keys, d.Instance
	var b backoff
	for {
		res, err := j.calls.readKeys(ctx, consistent, k.live(in), k.member(in), k.directive())
		if err == nil {
			live, member, directive := res.at(k.live(in)), res.at(k.member(in)), res.at(k.directive())
			if live != nil && live.Session == j.session && member != nil &&
				string(member.Value) == string(encode(d.Record)) && directive != nil {
				return j.newMembership(d, look, directive, member.ModifyIndex)
			}
			session := j.session
			j.session = ""
			// Destroying the session also refuses the claim if it is still on its way.
			return nil, errors.Join(j.calls.destroySession(ctx, session), errAgain, lost)
		}
		if err := pause(ctx, b.next()); err != nil {
			return nil, err
		}
	}
}

// newMembership makes the membership of a claim that succeeded.
func (j *joining) newMembership(
	d conductor.Claim, look conductor.Snapshot, directive *api.KVPair, index uint64,
) (*Membership, error) {
	s := &Membership{
		gang: j.gang, instance: d.Instance, previous: look.Member, turn: make(chan struct{}, 1),
		session: j.session, heard: j.born, record: d.Record, index: index,
	}
	if look.App != nil {
		s.app = *look.App
	}
	s.roster.ask = j.hooks.Roster
	s.giveTurn()
	j.start(directive)
	j.joined(s.instance)
	j.work.Go(s.renew)
	j.log.Info("claimed", "instance", d.Instance.String(), "proof", string(d.Proof))
	return s, nil
}
