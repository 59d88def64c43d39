package embedded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limits of Consul 1.14.
const (
	minTTL           = 10 * time.Second
	maxTTL           = 24 * time.Hour
	ttlMultiplier    = 2 // a session ends this many TTLs after its last renewal
	defaultLockDelay = 15 * time.Second
	maxLockDelay     = time.Minute
)

// Behavior says what the end of a session does to the keys that it holds.
type Behavior string

// The behaviours of Consul.
const (
	ReleaseKeys Behavior = "release"
	DeleteKeys  Behavior = "delete"
)

// nodeCheck is the one health check of the one node: it passes as long as this process lives.
const nodeCheck = "serfHealth"

// Session is a session as Consul shows it. The field names are those of its JSON.
type Session struct {
	ID            string
	Name          string
	Node          string
	LockDelay     time.Duration
	Behavior      Behavior
	TTL           string
	NodeChecks    []string
	ServiceChecks []ServiceCheck
	Checks        []string `json:",omitempty"`
	CreateIndex   uint64
	ModifyIndex   uint64
}

// ServiceCheck names a service's health check. There are no services here, so none exists.
type ServiceCheck struct {
	ID        string
	Namespace string
}

// lease is a session with its deadline.
type lease struct {
	Session
	ttl      time.Duration // 0: until it is destroyed
	deadline time.Time
}

func (l *lease) renew(now time.Time) { l.deadline = now.Add(ttlMultiplier * l.ttl) }

// CreateSession adds a session under its ID, which must be new. The texts of its errors are Consul's.
func (s *Store) CreateSession(now time.Time, want Session) (Touched, error) {
	if want.Node == "" {
		return Touched{}, errors.New("Must provide Node")
	}
	switch want.Behavior {
	case "":
		want.Behavior = ReleaseKeys
	case ReleaseKeys, DeleteKeys:
	default:
		return Touched{}, fmt.Errorf("Invalid Behavior setting '%s'", want.Behavior)
	}
	ttl, err := parseTTL(want.TTL)
	if err != nil {
		return Touched{}, err
	}
	if want.Node != s.node {
		return Touched{}, errors.New("apply failed: Missing node registration")
	}
	for _, check := range want.checkIDs() {
		if check != nodeCheck {
			return Touched{}, fmt.Errorf("apply failed: Missing check '%s' registration", check)
		}
	}
	s.index++
	s.sessionIndex = s.index
	want.CreateIndex, want.ModifyIndex = s.index, s.index
	l := &lease{Session: want, ttl: ttl}
	l.renew(now)
	s.sessions[want.ID] = l
	return Touched{Sessions: []string{want.ID}}, nil
}

func (s *Session) checkIDs() []string {
	ids := slices.Concat(s.Checks, s.NodeChecks)
	for _, c := range s.ServiceChecks {
		ids = append(ids, c.ID)
	}
	return ids
}

func parseTTL(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	ttl, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("Session TTL '%s' invalid: %w", text, err)
	}
	if ttl != 0 && (ttl < minTTL || ttl > maxTTL) {
		return 0, fmt.Errorf("Invalid Session TTL '%d', must be between [%v=%v]", ttl, minTTL, maxTTL)
	}
	return ttl, nil
}

// Session returns the session, or nil, and the index to wait on.
func (s *Store) Session(id string) (*Session, uint64) {
	index := max(s.sessionIndex, firstIndex)
	l := s.sessions[id]
	if l == nil {
		return nil, index
	}
	found := l.Session
	return &found, index
}

// Renew moves the end of the session to 2 × TTL from now. It returns nil when there is no such session.
func (s *Store) Renew(now time.Time, id string) *Session {
	l := s.sessions[id]
	if l == nil {
		return nil
	}
	l.renew(now)
	found := l.Session
	return &found
}

// Destroy ends the session: its keys are released or deleted in one write, and cannot be locked
// before its lock delay is over. A session that does not exist is no error.
func (s *Store) Destroy(now time.Time, id string) Touched {
	l := s.sessions[id]
	if l == nil {
		return Touched{}
	}
	delete(s.sessions, id)
	t := s.begin(now)
	s.sessionIndex = t.index
	maps.DeleteFunc(s.delays, func(_ string, until time.Time) bool { return !until.After(now) })
	for _, e := range s.heldBy(id) {
		if l.Behavior == DeleteKeys {
			t.delete(e.Key)
		} else {
			free := *e
			free.Session = ""
			t.put(free)
		}
		if delay := min(l.LockDelay, maxLockDelay); delay > 0 {
			s.delays[e.Key] = now.Add(delay)
		}
	}
	touched := t.commit()
	touched.Sessions = []string{id}
	return touched
}

func (s *Store) heldBy(id string) []*Entry {
	var held []*Entry
	for _, e := range s.entries.under("") {
		if e.Session == id {
			held = append(held, e)
		}
	}
	return held
}

// Expire ends all sessions whose time is over, the longest overdue first, and returns them.
func (s *Store) Expire(now time.Time) ([]Session, Touched) {
	var over []*lease
	for _, l := range s.sessions {
		if l.ttl > 0 && !l.deadline.After(now) {
			over = append(over, l)
		}
	}
	slices.SortFunc(over, func(a, b *lease) int {
		if c := a.deadline.Compare(b.deadline); c != 0 {
			return c
		}
		return int(a.CreateIndex) - int(b.CreateIndex)
	})
	var ended []Session
	var touched Touched
	for _, l := range over {
		did := s.Destroy(now, l.ID)
		touched.Keys = append(touched.Keys, did.Keys...)
		touched.Sessions = append(touched.Sessions, did.Sessions...)
		ended = append(ended, l.Session)
	}
	return ended, touched
}

// Next tells when the next session ends unless it is renewed; false when none ever does.
func (s *Store) Next() (next time.Time, ok bool) {
	for _, l := range s.sessions {
		if l.ttl > 0 && (!ok || l.deadline.Before(next)) {
			next, ok = l.deadline, true
		}
	}
	return next, ok
}
