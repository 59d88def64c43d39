package consul

import (
	"context"
	"errors"
	"time"

	"github.com/muster-agent/muster/registry"
)

// renew keeps the session alive, and finds out with each renewal whether the index is still this agent's. That the
// session lives proves nothing: it outlives the keys that it holds when the registry's data is deleted or restored.
func (s *Membership) renew() {
	beat := time.NewTicker(s.gang.times.Renew)
	defer beat.Stop()
	for {
		select {
		case <-s.gang.ctx.Done():
			return
		case <-beat.C:
		case <-s.gang.turned: // at once: a place is kept by its session alone, or the record has to be written again
		}
		if s.over() != nil {
			return
		}
		s.beat()
	}
}

func (s *Membership) beat() {
	g, h := s.gang, s.held()
	sent, moment := time.Now(), boottime()
	err := g.calls.renewSession(g.ctx, h.session, g.times.Request)
	if err == nil {
		err = s.verify(h)
	}
	if errors.Is(err, errSessionGone) || isRefusal(err) || errors.Is(err, errDataLost) {
		err = s.reattach()
	}
	switch {
	case s.over() != nil:
	case err == nil:
		s.noteContact(moment)
		g.link.answered(renewing, sent)
	case errors.Is(err, errDataLost), errors.Is(err, errTurn), isRefusal(err):
		g.link.answered(renewing, sent)
	case g.ctx.Err() == nil:
		g.link.failed(renewing, err)
	}
}

// verify checks that the index is held as this agent believes. The error is a *refusal if it is not.
func (s *Membership) verify(h held) error {
	g, k := s.gang, s.gang.keys
	ctx, cancel := context.WithTimeout(g.ctx, g.times.Request)
	defer cancel()
	_, err := g.calls.commit(ctx, k.mine(s.instance, h.session, h.index)...)
	if _, lost, _ := g.directive.now(); err == nil && lost {
		return errDataLost
	}
	return err
}

// noteContact remembers a moment after which the index was found to be this agent's.
func (s *Membership) noteContact(moment time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = max(s.heard, moment)
}

// errTurn: a writer holds the turn. It makes the registry and this membership agree itself.
var errTurn = errors.New("a write is under way")

// reattach makes the registry and this membership agree again. A session may end although it was renewed (a server that
// leaves ends the sessions made through it).
func (s *Membership) reattach() error {
	ctx, cancel := context.WithTimeout(s.gang.ctx, s.gang.times.Renew)
	defer cancel()
	if err := s.takeTurn(ctx); err != nil {
		return errors.Join(errTurn, err)
	}
	defer s.giveTurn()
	var b backoff
	for {
		_, err := s.reconcile(ctx, nil)
		if err == nil || !s.passes(err) || errors.Is(err, errDataLost) {
			return err
		}
		s.gang.log.Warn("not attached to the index, retrying", "instance", s.instance.String(), "err", err)
		if pause(ctx, b.next()) != nil {
			return err // the next beat tries again
		}
	}
}

// passes tells whether an error is temporary.
func (s *Membership) passes(err error) bool {
	return isUnknown(err) || isRefusal(err) || errors.Is(err, errDataLost) ||
		errors.Is(err, registry.ErrTooManyConnections)
}
