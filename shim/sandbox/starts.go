package sandbox

import "sync"

// starts says which start of a guard is under way: one at most.
type starts struct {
	mu      sync.Mutex
	state   state
	reply   chan error // of the Start under way
	attempt int
	pid     int // of the main process, 0 if none
}

type state int

const (
	idle state = iota
	starting
	running
	lingering // the starter has ended and left descendants
	emptying  // exited, not yet empty
	gone
)

// hasMain tells whether Exited is due.
func (s state) hasMain() bool { return s == running || s == lingering }

// reserve begins a start; its outcome comes on the channel.
func (s *starts) reserve(attempt int) (<-chan error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case gone:
		return nil, ErrGone
	case idle:
		s.state, s.attempt, s.reply, s.pid = starting, attempt, make(chan error, 1), 0
		return s.reply, nil
	case starting, running, lingering, emptying:
	}
	return nil, errBusy
}

// release takes a start back that the guard was never told of.
func (s *starts) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == starting {
		s.state, s.reply = idle, nil
	}
}

// turn moves to the next state and answers the Start under way, if any.
func (s *starts) turn(to state, pid int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = to
	if pid != 0 {
		s.pid = pid
	}
	s.answer(err)
}

// answer wants the lock.
func (s *starts) answer(err error) {
	if s.reply != nil {
		s.reply <- err
		s.reply = nil
	}
}

// emptied ends a start. An Empty that answers a Kill of nothing may meet the next Start under way.
func (s *starts) emptied() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == emptying {
		s.state = idle
	}
}

// current is the state, the attempt that it belongs to, and the pid of the main process.
func (s *starts) current() (now state, attempt, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.attempt, s.pid
}

// lose is the end of the guard; it returns what was under way. The Start, if any, is answered by lost.
func (s *starts) lose() (was state, attempt, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.state
	s.state = gone
	return was, s.attempt, s.pid
}

// lost answers the Start that was under way when the guard ended.
func (s *starts) lost(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer(why)
}
