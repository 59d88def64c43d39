package consul

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

// Hooks tell a newcomer about this host and about other agents. A nil hook knows nothing.
type Hooks struct {
	// Alive looks up a holder's process that has the same machine, boot and pid namespace. gone is a proof of its
	// death; why describes what was found.
	Alive func(registry.Member) (gone bool, why string)
	// Clean kills the rest of a dead agent of the instance on this host, and proves that nothing is left.
	Clean func(context.Context, registry.Instance, registry.Member) error
	// Answers tells whether the holder's agent answers at its API with that incarnation; from another host only with
	// the run's token.
	Answers func(ctx context.Context, in registry.Instance, holder registry.Member, token string) bool
	// Roster asks the agent at an address for the packed roster of an id, on behalf of a rank. next is the address of
	// the agent to ask instead. The error is registry.ErrNotYet if the agent does not have it yet.
	Roster func(ctx context.Context, peer, token, id string, rank int) (packed []byte, next string, err error)
}

// How often a newcomer looks again.
const (
	standbyLow, standbyHigh = time.Second, 2 * time.Second      // behind a holder
	freeLow, freeHigh       = 2 * time.Second, 10 * time.Second // without a free index
	holderPoll              = 200 * time.Millisecond            // check of the holder's process on this host
)

// Join takes the index that me names, or claims a free one. It founds the app if there is none (T2). If the last run is
// over and a new one is wanted, it begins that (T15). Behind a holder that is not proved gone it stands by
// (StandingBy). It returns with the claim (T3). While it waits it may conduct. ctx limits only the joining; the
// membership lives until Leave or Close.
//
// It refuses with *conductor.HeldError, *DigestError, *TimesError, *RunError, *FinishedError or *IndexError. notify is
// called from one goroutine, in order, until the membership is closed; it may call the membership's methods, except
// Close and Leave.
func (c *Client) Join(
	ctx context.Context, me conductor.Newcomer, h Hooks, notify func(registry.Event),
) (*Membership, error) {
	if me.Instance == nil && len(me.Claimable) == 0 {
		return nil, errors.New("join: neither an instance nor any that may be claimed")
	}
	j := &joining{
		gang: newGang(ctx, c, me, notify), hooks: h, records: map[registry.Instance]registry.Member{},
		suspected: map[registry.Instance]time.Time{},
	}
	s, err := j.run(ctx)
	if err != nil {
		j.abandon(ctx)
		return nil, err
	}
	return s, nil
}

// abandon undoes what a failed joining has begun. What cannot be undone ends with its session.
func (j *joining) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTime)
	defer cancel()
	j.resign()
	if j.began() {
		_ = j.await(ctx)
	}
	j.end()
	if j.session != "" {
		_ = j.calls.destroySession(ctx, j.session)
	}
}

// joining is a newcomer on its way to an index.
type joining struct {
	*gang
	hooks     Hooks
	session   string                                // of the member to be, "" until needed
	born      time.Duration                         // when the session was asked for: boottime
	records   map[registry.Instance]registry.Member // read while claiming
	holder    string                                // incarnation of the holder that this agent stands by for
	suspected map[registry.Instance]time.Time       // since when data seems lost, by the index looked at
	missing   bool                                  // it was reported
	b         backoff
}

func (j *joining) run(ctx context.Context) (*Membership, error) {
	for {
		s, err := j.round(ctx)
		if s != nil || err != nil && !passes(err) {
			return s, err
		}
		if err == nil {
			j.b.reset()
			continue
		}
		j.log.Debug("claim retried", "app", j.me.App, "why", err)
		if !errors.Is(err, errAgain) && !isRefusal(err) {
			j.link.failed(renewing, err) // no other request uses the registry yet
		}
		if err := pause(ctx, j.b.next()); err != nil {
			return nil, err
		}
	}
}

// errAgain: the readings contradict each other, or another agent was faster.
var errAgain = errors.New("look again")

// passes tells whether a newcomer tries again.
func passes(err error) bool {
	return errors.Is(err, errAgain) || isRefusal(err) || errors.Is(err, registry.ErrUnreachable) ||
		errors.Is(err, registry.ErrTooManyConnections)
}

// round looks once at each candidate and acts on it; it returns without an error after it has waited.
func (j *joining) round(ctx context.Context) (*Membership, error) {
	candidates, err := j.candidates(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range candidates {
		s, next, err := j.tryIndex(ctx, in)
		if s != nil || err != nil || !next {
			return s, err
		}
	}
	return nil, j.wait(ctx, jitter(freeLow, freeHigh), nil)
}

// candidates are the indexes to try, in order.
func (j *joining) candidates(ctx context.Context) ([]registry.Instance, error) {
	all := claimable(j.me)
	if j.me.Instance != nil {
		return all, nil
	}
	since := 0
	if last, lost, _ := j.directive.now(); last != nil && !lost {
		all, since = flexed(all, last.directive), last.directive.Retries.Gen
	}
	live, err := j.lives(ctx, j.keys)
	if err != nil {
		return nil, err
	}
	free := conductor.PickFree(live, j.records, all, hint(j.me.Member), since)
	if len(free) > 0 {
		return free, nil
	}
	dead, err := j.deadHere(ctx, all)
	if err != nil || len(dead) > 0 {
		return dead, err
	}
	return all[:1], nil // for the verdict and the digest
}

// deadHere are the held indexes whose holders were on this host and are proved gone, although their sessions have not
// ended yet.
func (j *joining) deadHere(ctx context.Context, all []registry.Instance) ([]registry.Instance, error) {
	pairs, err := j.bulk.list(ctx, j.keys.members(), byDefault)
	if err != nil {
		return nil, err
	}
	var dead []registry.Instance
	for _, pair := range pairs {
		at := instancesAt(j.keys.members(), []string{pair.Key})
		m, err := decode[registry.Member](pair.Key, pair.Value)
		if err != nil {
			return nil, err
		}
		if len(at) == 1 && slices.Contains(all, at[0]) && j.provedGone(&m) {
			dead = append(dead, at[0])
		}
	}
	return dead, nil
}

// tryIndex looks at one index and acts on the decision. next asks for the next candidate.
func (j *joining) tryIndex(ctx context.Context, in registry.Instance) (s *Membership, next bool, err error) {
	look, directive, err := j.snapshot(ctx, in)
	if err != nil {
		return nil, false, err
	}
	j.link.answered(renewing, look.Now)
	if look.Member != nil {
		j.records[in] = *look.Member
	}
	if look.MayHaveLost(j.me) {
		if look.Holders, err = j.holders(ctx, look.Directive != nil); err != nil {
			return nil, false, err
		}
	}
	decision := j.admit(ctx, &look)
	j.reportLoss(in, decision)
	// A newcomer that may stay watches the directive, because it may have to conduct. It must not before its right to
	// be here is clear.
	if _, refused := decision.(conductor.Refuse); !refused && directive != nil && look.Directive.Run == j.me.Run {
		j.start(directive)
	}
	switch d := decision.(type) {
	case conductor.Found:
		return nil, false, j.found(ctx, d)
	case conductor.NewRun:
		return nil, false, j.newRun(ctx, d, look)
	case conductor.Claim:
		s, err = j.claim(ctx, d, look)
		return s, j.me.Instance == nil && isRefusal(err), err
	case conductor.Refuse:
		return nil, false, d.Err
	case conductor.Standby:
		if j.me.Instance == nil {
			return nil, true, nil
		}
		return nil, false, j.standBy(ctx, d.Holder)
	case conductor.Wait:
		if j.me.Instance == nil {
			return nil, true, nil
		}
		j.log.Info("waiting for the index", "instance", in.String(), "why", d.Why)
		return nil, false, j.wait(ctx, jitter(standbyLow, standbyHigh), nil)
	case conductor.Vanished:
		if j.session != "" { // others must not take it for a holder's
			_ = j.calls.destroySession(ctx, j.session) // it ends by itself
			j.session = ""
		}
		if j.me.Instance == nil && look.App != nil {
			return nil, true, nil
		}
		return nil, false, j.wait(ctx, jitter(standbyLow, standbyHigh), nil)
	case conductor.Retry:
		if j.me.Instance == nil {
			return nil, true, nil
		}
		return nil, false, fmt.Errorf("%w: %s", errAgain, d.Why)
	}
	return nil, false, fmt.Errorf("join %s: unknown decision %T", in, decision)
}

// reportLoss reports that the app's data is lost, and that it is there again. One look is no proof: a peer that is
// about to found the app has its place on this host before the registry has the app. So a loss must last.
func (j *joining) reportLoss(in registry.Instance, d conductor.Admission) {
	lost, gone := d.(conductor.Vanished)
	if !gone {
		delete(j.suspected, in)
		if j.missing && len(j.suspected) == 0 {
			j.missing = false
			j.mail.send(registry.Reachable{})
		}
		return
	}
	since, seen := j.suspected[in]
	switch {
	case !seen:
		j.suspected[in] = time.Now()
	case !j.missing && time.Since(since) >= standbyLow:
		j.missing = true
		j.log.Warn("registry lost its data", "app", j.me.App, "why", lost.Why)
		j.mail.send(registry.DataLost{Why: lost.Why})
	}
}

// admit asks the holder's agent only if its answer can matter.
func (j *joining) admit(ctx context.Context, look *conductor.Snapshot) conductor.Admission {
	alive := func(registry.Process) conductor.Life {
		if j.hooks.Alive == nil || look.Member == nil {
			return conductor.LifeUnknown
		}
		gone, why := j.hooks.Alive(*look.Member)
		j.log.Debug("holder's process looked up", "instance", look.Instance.String(), "gone", gone, "why", why)
		if gone {
			return conductor.LifeDead
		}
		return conductor.LifeAlive
	}
	d := conductor.Admit(*look, j.me, alive)
	if j.hooks.Answers == nil || look.App == nil || !answerMatters(d, *look, j.me.Launcher) {
		return d
	}
	look.Answers = j.hooks.Answers(ctx, look.Instance, *look.Member, look.App.Token)
	return conductor.Admit(*look, j.me, alive)
}

// answerMatters tells whether an answer of the holder's agent can change the decision. A launcher or an operator may be
// wrong that the holder is gone, whether its session has ended or not. And an agent that was started from a shell must
// not wait behind a living holder.
func answerMatters(d conductor.Admission, look conductor.Snapshot, launcher bool) bool {
	if look.Member == nil {
		return false
	}
	switch d := d.(type) {
	case conductor.Standby, conductor.Wait:
		return look.LiveSession != "" && !launcher
	case conductor.Claim:
		return d.Proof == conductor.ProofSlot || d.Proof == conductor.ProofOperator || d.Proof == conductor.ProofBoot
	}
	return false
}

// found is T2.
func (j *joining) found(ctx context.Context, d conductor.Found) error {
	app, there, err := j.fitDefinition(ctx, d.App, d.Directive)
	if err != nil {
		return err
	}
	session, err := j.createSession(ctx)
	if err != nil {
		return err
	}
	value := encode(d.Directive)
	res, err := j.calls.commit(ctx, j.keys.found(session, encode(app), value, there)...)
	return j.conductFrom(ctx, session, value, res, err)
}

// newRun is T6 and T15 in one transaction: nobody conducts, and from here on this agent does, in the new run, of which
// nobody has asked anything yet. The transaction checks that this run has not ended, and that the indexes are free as
// far as it can. A member of the old run that slips past the check keeps its index and delays the new run, but starts
// nothing: its record names another run, and no barrier counts it.
func (j *joining) newRun(ctx context.Context, d conductor.NewRun, look conductor.Snapshot) error {
	if look.DirectiveSession != "" { // the last run's conductor still cleans up
		return j.wait(ctx, jitter(holderPoll, 2*holderPoll), nil)
	}
	app, there, err := j.fitDefinition(ctx, d.App, d.Directive)
	if err != nil {
		return err
	}
	session, err := j.createSession(ctx)
	if err != nil {
		return err
	}
	old := look.App.DefID
	if old == app.DefID {
		old = ""
	}
	value := encode(d.Directive)
	res, err := j.calls.commit(ctx, j.keys.newRun(session, j.me.Run, look.DirectiveIndex, d.AppIndex, encode(app),
		value, there, old, d.Free)...)
	return j.conductFrom(ctx, session, value, res, err)
}

func (j *joining) createSession(ctx context.Context) (string, error) {
	return j.makeSession(ctx, conductorSession, api.SessionBehaviorRelease)
}

// conductFrom hands over a directive that this newcomer has written under session. If the result is unknown, the lock
// decides: only this agent knows its session.
func (j *joining) conductFrom(ctx context.Context, session string, value []byte, res results, err error) error {
	if err == nil {
		j.inherit(session)
		j.start(&api.KVPair{
			Key: j.keys.directive(), Value: value, ModifyIndex: res.index(j.keys.directive()),
			Session: session,
		})
		return nil
	}
	if !isUnknown(err) {
		_ = j.calls.destroySession(ctx, session) // it ends by itself
		return err
	}
	var b backoff
	for {
		pair, readErr := j.calls.get(ctx, j.keys.directive(), consistent)
		if readErr == nil && pair != nil && pair.Session == session {
			j.inherit(session)
			j.start(pair)
			return nil
		}
		if readErr == nil {
			// Destroying the session also refuses the transaction if it is still on its way.
			return errors.Join(j.calls.destroySession(ctx, session), errAgain)
		}
		if err := pause(ctx, b.next()); err != nil {
			return err
		}
	}
}

// standBy waits behind a holder that is not proved gone.
func (j *joining) standBy(ctx context.Context, holder registry.Member) error {
	in := *j.me.Instance
	if j.holder != holder.Inc {
		j.holder = holder.Inc
		j.mail.send(registry.StandingBy{Instance: in, Holder: holder})
		j.log.Info("standing by", "instance", in.String(), "holder", holder.Inc, "host", holder.Host)
	}
	return j.wait(ctx, jitter(standbyLow, standbyHigh), &holder)
}

// wait ends after d, when the directive changes, or when the holder's process on this host is gone.
func (j *joining) wait(ctx context.Context, d time.Duration, holder *registry.Member) error {
	_, _, changed := j.directive.now()
	end := time.NewTimer(d)
	defer end.Stop()
	look := time.NewTicker(holderPoll)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
			return nil
		case <-end.C:
			return nil
		case <-look.C:
			if j.provedGone(holder) {
				return nil
			}
		}
	}
}

func (j *joining) provedGone(holder *registry.Member) bool {
	if holder == nil || j.hooks.Alive == nil || !conductor.SamePIDs(holder.Process, j.me.Member.Process) {
		return false
	}
	gone, _ := j.hooks.Alive(*holder)
	return gone
}
