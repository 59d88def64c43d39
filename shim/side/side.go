package side

import "time"

// StableAfter is how long a side process must live for the next pause to be the first again.
const StableAfter = time.Minute

// Pauses before a start.
const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// mostInRow is how many restarts in a row are no reason for a warning.
const mostInRow = 2

// Rule is what holds for one side process.
type Rule struct {
	Restart  bool // after an end
	Finishes bool // an end with 0 is its last
}

// State is what its past says. The zero value is that of one that was never started.
type State struct {
	Restarts int // starts after the first
	InRow    int // the newest of them, between which it never lived for StableAfter
	pause    time.Duration
	over     bool
}

// Over tells that it is not started again.
func (s State) Over() bool { return s.over }

// Unstable tells that it is restarted again and again.
func (s State) Unstable() bool { return s.InRow > mostInRow }

// End is how one start ended.
type End struct {
	OK    bool          // with 0
	Lived time.Duration // 0: it could not be started
}

// Step takes in one end and gives the pause before the next start; 0 with a State that is Over.
func Step(rule Rule, s State, e End) (State, time.Duration) {
	if !rule.Restart || rule.Finishes && e.OK {
		s.over, s.pause = true, 0
		return s, 0
	}
	switch {
	case s.pause == 0 || e.Lived >= StableAfter:
		s.pause, s.InRow = firstPause, 0
	default:
		s.pause = min(2*s.pause, mostPause)
	}
	s.Restarts++
	s.InRow++
	return s, s.pause
}
