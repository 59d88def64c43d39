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

// behavior is what the end of a session does to the keys that it holds.
type behavior string

// The behaviours of Consul.
const (
	releaseKeys behavior = "release"
	deleteKeys  behavior = "delete"
)

// nodeCheck is the one health check of the one node: it passes as long as this process lives.
const nodeCheck = "serfHealth"

// sessionInfo is a session as Consul shows it. The field names are those of its JSON.
type sessionInfo struct {
	ID            string
	Name          string
	Node          string
	LockDelay     time.Duration
	Behavior      behavior
	TTL           string
	NodeChecks    []string
	ServiceChecks []serviceCheck
	Checks        []string `json:",omitempty"`
	CreateIndex   uint64
	ModifyIndex   uint64
}

// serviceCheck names the health check of a service. There are no services here, so none exists.
type serviceCheck struct {
	ID        string
	Namespace string
}

// lease is a session with its deadline.
type lease struct {
	sessionInfo
	ttl      time.Duration // 0: until it is destroyed
	deadline time.Time
}

func (l *lease) renew(now time.Time) { l.deadline = now.Add(ttlMultiplier * l.ttl) }

// createSession adds a session under its ID, which must be new. The texts of its errors are Consul's.
func (s *keyStore) createSession(now time.Time, want sessionInfo) (changes, error) {
	if want.Node == "" {
		return changes{}, errors.New("Must provide Node")
	}
	switch want.Behavior {
	case "":
		want.Behavior = releaseKeys
	case releaseKeys, deleteKeys:
	default:
		return changes{}, fmt.Errorf("Invalid Behavior setting '%s'", want.Behavior)
	}
	ttl, err := parseTTL(want.TTL)
	if err != nil {
		return changes{}, err
	}
	if want.Node != s.node {
		return changes{}, errors.New("apply failed: Missing node registration")
	}
	for _, check := range want.checkIDs() {
		if check != nodeCheck {
			return changes{}, fmt.Errorf("apply failed: Missing check '%s' registration", check)
		}
	}
	s.index++
	s.sessionIndex = s.index
	want.CreateIndex, want.ModifyIndex = s.index, s.index
	l := &lease{sessionInfo: want, ttl: ttl}
	l.renew(now)
	s.sessions[want.ID] = l
	return changes{Sessions: []string{want.ID}}, nil
}

func (s *sessionInfo) checkIDs() []string {
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

// session returns the session, or nil, and the index to wait on.
func (s *keyStore) session(id string) (*sessionInfo, uint64) {
	index := max(s.sessionIndex, firstIndex)
	l := s.sessions[id]
	if l == nil {
		return nil, index
	}
	found := l.sessionInfo
	return &found, index
}

// renew moves the end of the session to 2 × TTL from now. It returns nil if the session does not exist.
func (s *keyStore) renew(now time.Time, id string) *sessionInfo {
	l := s.sessions[id]
	if l == nil {
		return nil
	}
	l.renew(now)
	found := l.sessionInfo
	return &found
}

// destroy ends the session: one write releases or deletes its keys, and they cannot be locked before its lock delay is
// over. A missing session is no error.
func (s *keyStore) destroy(now time.Time, id string) changes {
	l := s.sessions[id]
	if l == nil {
		return changes{}
	}
	delete(s.sessions, id)
	t := s.begin(now)
	s.sessionIndex = t.index
	maps.DeleteFunc(s.delays, func(_ string, until time.Time) bool { return !until.After(now) })
	for _, e := range s.heldBy(id) {
		if l.Behavior == deleteKeys {
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

func (s *keyStore) heldBy(id string) []*entry {
	var held []*entry
	for _, e := range s.entries.under("") {
		if e.Session == id {
			held = append(held, e)
		}
	}
	return held
}

// expire ends all sessions whose time is over, the longest overdue first, and returns them.
func (s *keyStore) expire(now time.Time) ([]sessionInfo, changes) {
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
	var ended []sessionInfo
	var touched changes
	for _, l := range over {
		did := s.destroy(now, l.ID)
		touched.Keys = append(touched.Keys, did.Keys...)
		touched.Sessions = append(touched.Sessions, did.Sessions...)
		ended = append(ended, l.sessionInfo)
	}
	return ended, touched
}

// next is when the next session ends unless it is renewed; false if none ever does.
func (s *keyStore) next() (next time.Time, ok bool) {
	for _, l := range s.sessions {
		if l.ttl > 0 && (!ok || l.deadline.Before(next)) {
			next, ok = l.deadline, true
		}
	}
	return next, ok
}
