package consul

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// errLeft: the membership was left or closed.
var errLeft = errors.New("index was left")

// Membership is an index that this agent holds: its record, its session, and its part in conducting. It is safe for
// concurrent use; writes queue behind each other.
type Membership struct {
	gang     *gang
	instance registry.Instance
	previous *registry.Member
	token    string
	founded  time.Time

	turn   chan struct{} // holds one token: the right to write
	roster rosterCopy

	mu         sync.Mutex // guards the fields below; only the holder of the turn changes them
	session    string
	renewed    time.Duration   // when that session, or its last answered renewal, was asked for: boottime
	candidate  string          // a session of which nobody knows whether it was attached
	tried      time.Duration   // when that session was asked for
	record     registry.Member // as last written or read
	index      uint64          // its ModifyIndex
	unsure     bool            // the registry may hold another record
	ended      error           // why nothing can be written any more
	checkpoint checkpointKey
}

// Instance is the index that was claimed.
func (s *Membership) Instance() registry.Instance { return s.instance }

// Previous is the record of the index before it was claimed (its attempt, budget, ports); nil if there was none.
func (s *Membership) Previous() *registry.Member { return s.previous }

// Token is the secret that the agents of the run show each other; its founder made it.
func (s *Membership) Token() string { return s.token }

// Record is this agent's own record as last written.
func (s *Membership) Record() registry.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cloneMember(s.record)
}

// LastRenewal is when the last answered renewal was sent, and the time now: both since the machine booted, suspended
// time included. The answer that the session has ended does not count until the index is attached again.
func (s *Membership) LastRenewal() (heard, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewed, boottime()
}

// Directive is the newest directive seen.
func (s *Membership) Directive() registry.Directive { return s.gang.directive.directive() }

// Close stops the membership's goroutines and its part in conducting. It writes nothing: the registry notices when the
// session ends. Leave is the orderly way.
func (s *Membership) Close() {
	s.end(errLeft)
	s.gang.end()
}

// end refuses all later writes.
func (s *Membership) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = why
	}
}

func (s *Membership) takeTurn(ctx context.Context) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.gang.ctx.Done():
		return cmp.Or(s.over(), errLeft)
	}
	if err := s.over(); err != nil {
		s.giveTurn()
		return err
	}
	return nil
}

func (s *Membership) giveTurn() { s.turn <- struct{}{} }

func (s *Membership) over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// held is what a transaction needs from the membership's state.
type held struct {
	session string
	record  registry.Member
	index   uint64
}

func (s *Membership) held() held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return held{s.session, cloneMember(s.record), s.index}
}

func (s *Membership) adopt(m registry.Member, index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record, s.index, s.unsure = m, index, false
}

func (s *Membership) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsure = true
}

func (s *Membership) doubtful() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unsure
}

// renew keeps the session alive. A session may end although it was renewed (a server that leaves ends the sessions made
// through it): then the membership is attached again.
func (s *Membership) renew() {
	g := s.gang
	beat := time.NewTicker(g.times.Renew)
	defer beat.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-beat.C:
		}
		if s.over() != nil {
			return
		}
		session, sent, moment := s.held().session, time.Now(), boottime()
		err := g.calls.renewSession(g.ctx, session, g.times.Request)
		switch {
		case err == nil:
			s.noteRenewal(session, moment)
			g.link.answered(renewing, sent)
		case errors.Is(err, errSessionGone):
			// Only the holder of the index has contact: another agent may have taken it meanwhile.
			if s.reattach(session) {
				g.link.answered(renewing, sent)
			}
		case g.ctx.Err() == nil:
			g.link.failed(renewing, err)
		}
	}
}

// noteRenewal remembers an answered renewal, unless the membership has another session by now.
func (s *Membership) noteRenewal(session string, moment time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.renewed = moment
	}
}

// reattach follows a renewal that was answered with 404; true when the index is attached.
func (s *Membership) reattach(ended string) bool {
	ctx, cancel := context.WithTimeout(s.gang.ctx, s.gang.times.Renew)
	defer cancel()
	if s.takeTurn(ctx) != nil {
		return false
	}
	defer s.giveTurn()
	if s.held().session != ended {
		return true // a writer has attached it
	}
	var b backoff
	for {
		_, err := s.reconcile(ctx, nil)
		if err == nil || !s.passes(err) {
			return s.held().session != ended
		}
		s.gang.log.Warn("not attached to the index, retrying", "instance", s.instance.String(), "err", err)
		if pause(ctx, b.next()) != nil {
			return false // the next renewal is answered with 404 too
		}
	}
}

// passes tells whether an error is temporary.
func (s *Membership) passes(err error) bool {
	return isUnknown(err) || isRefusal(err) || errors.Is(err, errDataLost) ||
		errors.Is(err, registry.ErrTooManyConnections)
}

// reconcile makes this membership and the registry agree: it reads with consistency, takes over the record's index, and
// attaches a new session (T9) if the old one has ended. done tells that the registry holds one of the records sent. The
// caller must hold the turn.
func (s *Membership) reconcile(ctx context.Context, sent []registry.Member) (done bool, err error) {
	g, k := s.gang, s.gang.keys
	mark := g.directive.mark()
	res, err := g.calls.readKeys(ctx, consistent, k.member(s.instance), k.live(s.instance), k.directive())
	if err != nil {
		return false, err
	}
	g.observe(res.at(k.directive()), mark)
	pair := res.at(k.member(s.instance))
	if pair == nil {
		return false, errDataLost
	}
	m, err := decode[registry.Member](pair.Key, pair.Value)
	if err != nil {
		return false, err
	}
	if m.Inc != g.me.Member.Inc || m.Phase == registry.PhaseLost {
		return false, s.supersede(m)
	}
	s.adopt(m, pair.ModifyIndex)
	done = slices.ContainsFunc(sent, func(o registry.Member) bool { return string(encode(o)) == string(pair.Value) })
	return done, s.attach(ctx, res.at(k.live(s.instance)))
}

// supersede ends the membership: another agent has the index, or the conductor has declared this agent lost.
func (s *Membership) supersede(m registry.Member) error {
	why := fmt.Errorf("%s: %w (%s by %s)", s.instance, registry.ErrSuperseded, m.Phase, m.Inc)
	if s.over() == nil {
		s.end(why)
		s.gang.mail.send(registry.SupersededBy{Inc: m.Inc})
		s.gang.resign()
	}
	return why
}

// attach is T9, unless the live key is ours already.
func (s *Membership) attach(ctx context.Context, live *api.KVPair) error {
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
		s.adoptSession(candidate, tried)
		return nil
	case live != nil && live.Session != "":
		return &refusal{what: []string{k.live(s.instance) + " is locked by another session"}}
	}
	session := candidate
	if session == "" {
		tried = boottime()
		var err error
		if session, err = g.calls.createSession(ctx, s.name(), api.SessionBehaviorDelete, g.times.TTL); err != nil {
			return err
		}
		s.mu.Lock()
		s.candidate, s.tried = session, tried
		s.mu.Unlock()
	}
	ops := []*api.TxnOp{
		opIndex(k.member(s.instance), h.index),
		opLock(k.live(s.instance), session, []byte(h.record.Inc)),
	}
	// After the registry's data went back in time, acknowledgements of its lost future are void.
	if _, lost, _ := g.directive.now(); h.record.Phase == registry.PhaseReady && h.record.Gen > 0 && !lost {
		ops = append(ops, opLock(k.readyOf(h.record.Gen, s.instance), session, nil))
	}
	_, err := g.calls.commit(ctx, ops...)
	if isRefusal(err) { // the session may be the cause
		s.mu.Lock()
		s.candidate = ""
		s.mu.Unlock()
		_ = g.calls.destroySession(ctx, session) // it ends by itself
	}
	if err != nil {
		return err
	}
	s.adoptSession(session, tried)
	g.log.Info("attached to the index again", "instance", s.instance.String())
	return nil
}

func (s *Membership) adoptSession(session string, began time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.renewed, s.candidate = session, began, ""
}

// name is the session's name, for people who list sessions.
func (s *Membership) name() string { return sessionName(s.gang.me.App, s.instance.String()) }

func sessionName(app, who string) string { return "muster " + app + " " + who }

func cloneMember(m registry.Member) registry.Member {
	c, err := decode[registry.Member]("", encode(m))
	if err != nil {
		panic(err)
	}
	return c
}
