package consul

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// reconcile makes this membership and the registry agree: it reads with consistency, takes over the record's index, and
// attaches a new session (T9) if the old one has ended. A record that has vanished or gone back is written again. done
// tells that the registry holds one of the records sent. The caller must hold the turn.
func (s *Membership) reconcile(ctx context.Context, sent []registry.Member) (done bool, err error) {
	g, k := s.gang, s.gang.keys
	mark := g.directive.mark()
	res, err := g.calls.readKeys(ctx, consistent, k.app(), k.member(s.instance), k.live(s.instance), k.directive(),
		k.verdict(s.app.Run))
	if err != nil {
		return false, err
	}
	g.observe(res.at(k.directive()), mark)
	if err := s.sameFounding(res.at(k.app())); err != nil {
		return false, err
	}
	pair, live := res.at(k.member(s.instance)), res.at(k.live(s.instance))
	_, lost, _ := g.directive.now()
	if lost {
		if err := s.takeVerdict(res.at(k.verdict(s.app.Run))); err != nil {
			return false, err
		}
	}
	if pair == nil && (lost || res.at(k.directive()) == nil || res.at(k.app()) == nil) {
		s.forgetIndex()
		return false, s.keepPlace(ctx)
	}
	older := true
	if pair != nil {
		m, err := decode[registry.Member](pair.Key, pair.Value)
		if err != nil {
			return false, err
		}
		done = slices.ContainsFunc(sent, func(o registry.Member) bool {
			return string(encode(o)) == string(pair.Value)
		})
		mine := m.Inc == g.me.Member.Inc && m.Phase != registry.PhaseLost
		older = s.older(m, pair, mine, lost) && !done
		switch {
		case older:
		case mine:
			s.take(m, pair.ModifyIndex)
		default:
			return false, s.supersede(m)
		}
	}
	switch {
	case lost:
		if err := s.attach(ctx, live, pair.ModifyIndex); err != nil {
			return done, err
		}
		return done, errDataLost
	case older:
		if err := s.rewrite(ctx, pair, live, res.at(k.directive())); err != nil {
			return false, err
		}
	}
	return done, s.attach(ctx, live, s.held().index)
}

// older tells whether the registry's record of this index is from before the one that this agent wrote last: a restored
// copy, of this agent's own or of a predecessor's. Indexes rise, so a lower one is older. Where the registry has begun
// its indexes anew they tell nothing (0): then another agent's record counts unless the data is lost or the record is
// known to be of before the claim, and of the own ones that which was written last.
func (s *Membership) older(m registry.Member, pair *api.KVPair, mine, lost bool) bool {
	now := s.gang.directive.directive().Run
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.index > 0:
		return pair.ModifyIndex < s.index
	case mine:
		return !s.unsure && string(encode(s.record)) != string(pair.Value)
	case now == s.record.Run && m.Run != now, s.previous != nil && m.Inc == s.previous.Inc:
		return true
	}
	return lost
}

// forgetIndex notes that the registry has nothing of what this agent has written, and may begin its indexes anew.
func (s *Membership) forgetIndex() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index = 0
}

// takeVerdict passes on the verdict that the run has, though the registry has lost the directive that told it.
func (s *Membership) takeVerdict(pair *api.KVPair) error {
	if pair == nil {
		return nil
	}
	v, err := decode[registry.Verdict](pair.Key, pair.Value)
	if err == nil {
		s.gang.report(s.gang.directive.conclude(v))
	}
	return err
}

// sameFounding ends the membership if the app's record is of another founding of the same run: the registry's data was
// lost, and another gang has begun since.
func (s *Membership) sameFounding(pair *api.KVPair) error {
	if pair == nil {
		return nil
	}
	app, err := decode[registry.AppRecord](pair.Key, pair.Value)
	if err != nil {
		return err
	}
	if app.Run != s.app.Run || app.Created.Equal(s.app.Created) {
		return nil
	}
	return s.giveUp(app.By, fmt.Errorf("%s: %w (the app was founded anew by %s)", s.instance,
		registry.ErrSuperseded, app.By))
}

// supersede ends the membership: another agent has the index, or the conductor has declared this agent lost.
func (s *Membership) supersede(m registry.Member) error {
	return s.giveUp(m.Inc, fmt.Errorf("%s: %w (%s by %s)", s.instance, registry.ErrSuperseded, m.Phase, m.Inc))
}

func (s *Membership) giveUp(to string, why error) error {
	if s.over() == nil {
		s.end(why)
		s.gang.mail.send(registry.SupersededBy{Inc: to})
		s.gang.resign()
	}
	return why
}

// keepPlace keeps a session alive under this instance's name while the registry has lost all else: nobody founds an app
// of which agents live. It returns errDataLost.
func (s *Membership) keepPlace(ctx context.Context) error {
	h := s.held()
	err := s.gang.calls.renewSession(ctx, h.session, s.gang.times.Request)
	if err == nil {
		return errDataLost
	}
	if !errors.Is(err, errSessionGone) {
		return err
	}
	began := boottime()
	session, err := s.gang.makeSession(ctx, s.instance.String(), api.SessionBehaviorDelete)
	if err != nil {
		return err
	}
	s.takeSession(session, began)
	return errDataLost
}

// rewrite writes the own record again, in place of the older one that the registry has, if any: its data was lost in
// part, or came back from a copy.
func (s *Membership) rewrite(ctx context.Context, old, live, directive *api.KVPair) error {
	g, k, h := s.gang, s.gang.keys, s.held()
	if directive == nil {
		return errDataLost
	}
	var index uint64
	if old != nil {
		index = old.ModifyIndex
	}
	var around ops
	switch gen := s.acknowledged(h); {
	case gen == 0: // an older copy may have the acknowledgement that was taken back since
		around = k.unready(s.instance, h.record.Gen)
	case live != nil && live.Session == h.session: // else attach acknowledges
		around = k.acknowledge(s.instance, h.session, gen, 0)
	}
	res, err := g.calls.commit(ctx, k.rewrite(s.instance, directive.ModifyIndex, index, encode(h.record), around)...)
	if err != nil {
		return err
	}
	s.take(h.record, res.index(k.member(s.instance)))
	g.log.Warn("own record written again: the registry had lost it", "instance", s.instance.String())
	return nil
}

// attach is T9, unless the live key is ours already. index is the record's.
func (s *Membership) attach(ctx context.Context, live *api.KVPair, index uint64) error {
	g, k := s.gang, s.gang.keys
	h := s.held()
	s.mu.Lock()
	candidate, tried := s.candidate, s.tried
	s.mu.Unlock()
	switch {
	case h.record.Phase == registry.PhaseLeft:
		return nil // there is nothing left to hold
	case live != nil && live.Session == h.session:
		return nil
	case live != nil && live.Session != "" && live.Session == candidate:
		s.takeSession(candidate, tried)
		return nil
	case live != nil && live.Session != "" && live.ModifyIndex < h.index:
		// An older lock can only have come back with a copy. Its session holds nothing: this agent's claim had a proof
		// that the holder was gone, or it is a session that this agent had before.
		if err := g.calls.destroySession(ctx, live.Session); err != nil {
			return err
		}
	case live != nil && live.Session != "":
		return &refusal{what: []string{k.live(s.instance) + " is locked by another session"}}
	}
	session := candidate
	if session == "" {
		tried = boottime()
		var err error
		if session, err = g.makeSession(ctx, s.instance.String(), api.SessionBehaviorDelete); err != nil {
			return err
		}
		s.mu.Lock()
		s.candidate, s.tried = session, tried
		s.mu.Unlock()
	}
	_, err := g.calls.commit(ctx, k.attach(s.instance, session, index, h.record.Inc, s.acknowledged(h))...)
	if isRefusal(err) { // the session may be the cause
		s.mu.Lock()
		s.candidate = ""
		s.mu.Unlock()
		_ = g.calls.destroySession(ctx, session) // it ends by itself
	}
	if err != nil {
		return err
	}
	s.takeSession(session, tried)
	if old := h.session; old != session {
		_ = g.calls.destroySession(ctx, old) // it has ended, or holds nothing
	}
	g.log.Info("attached to the index again", "instance", s.instance.String())
	return nil
}

// acknowledged is the generation that the record acknowledges, 0: none. After the registry's data went back in time,
// acknowledgements of its lost future are void.
func (s *Membership) acknowledged(h held) int {
	if _, lost, _ := s.gang.directive.now(); lost || h.record.Phase != registry.PhaseReady {
		return 0
	}
	return h.record.Gen
}

func (s *Membership) takeSession(session string, began time.Duration) {
	_, lost, _ := s.gang.directive.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.candidate = session, ""
	if !lost {
		s.heard = max(s.heard, began)
	}
}
