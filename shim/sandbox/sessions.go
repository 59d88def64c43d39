package sandbox

import "sync"

// sessionTable knows the sessions of a guard whose end has not been reported.
type sessionTable struct {
	mu   sync.Mutex
	over bool // no further session is taken
	last int64
	byID map[int64]*Session
}

// enroll gives the session its number; from now on the guard's messages reach it.
func (t *sessionTable) enroll(s *Session) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return ErrGone
	}
	t.last++
	s.id = t.last
	t.byID[s.id] = s
	return nil
}

// dismiss removes the session; nil when it is not known.
func (t *sessionTable) dismiss(id int64) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	delete(t.byID, id)
	return s
}

func (t *sessionTable) get(id int64) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// shut takes no further session.
func (t *sessionTable) shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// lose is for a guard that is gone: all of its processes have ended unseen.
func (t *sessionTable) lose(why error) {
	t.shut()
	t.mu.Lock()
	all := t.byID
	t.byID = map[int64]*Session{}
	t.mu.Unlock()
	for _, s := range all {
		s.lose(why)
	}
}
