package consul

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

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
	app      registry.AppRecord // as it was at the claim

	turn   chan struct{} // holds one token: the right to write
	roster rosterCopy

	mu         sync.Mutex // guards the fields below; only the holder of the turn changes them
	session    string
	heard      time.Duration   // when the last beat began that found the index to be this agent's: boottime
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
func (s *Membership) Token() string { return s.app.Token }

// Record is this agent's own record as last written.
func (s *Membership) Record() registry.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cloneMember(s.record)
}

// LastContact is when this agent last asked and found that the index is its own (session, live key and record, while
// the registry has the app's data), and the time now: both since the machine booted, suspended time included.
func (s *Membership) LastContact() (heard, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard, boottime()
}

// Directive is the newest directive seen.
func (s *Membership) Directive() registry.Directive { return s.gang.directive.directive() }

// Lost says why the registry's data of the app seems lost; "": it is there.
func (s *Membership) Lost() string { return s.gang.directive.whyLost() }

// WentBack tells that the registry has an older copy of the app's data than this agent has seen.
func (s *Membership) WentBack() bool { return s.gang.directive.wentBack() }

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

func (s *Membership) take(m registry.Member, index uint64) {
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

func cloneMember(m registry.Member) registry.Member {
	c, err := decode[registry.Member]("", encode(m))
	if err != nil {
		panic(err)
	}
	return c
}
