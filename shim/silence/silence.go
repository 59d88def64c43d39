package silence

import (
	"context"
	"time"
)

// Signs are what a program has shown so far. Any change of them is a sign of life.
type Signs struct {
	Attempt        int // of the start that runs; 0: no process runs
	Stdout, Stderr int64
	Step           int64   // of the newest checkpoint
	Progress       float64 // as reported; below 0: none
}

// Finding is what a look found.
type Finding struct {
	Kind kind
	For  time.Duration // how long there was no sign
}

type kind int

// The kinds of findings.
const (
	Nothing kind = iota
	Silent       // no sign for the limit, for twice that, and so on
	Heard        // a sign again, after Silent
	Ended        // the process that was silent has ended
)

// watch remembers the last signs of one program.
type watch struct {
	limit time.Duration
	last  Signs
	since time.Time     // of the look that found the last change
	next  time.Duration // the silence to tell of next
}

// newWatch watches for a silence of that length.
func newWatch(limit time.Duration) *watch { return &watch{limit: limit, next: limit} }

// look compares the signs of now with those of the last look.
func (w *watch) look(now time.Time, s Signs) Finding {
	lasted := now.Sub(w.since)
	switch {
	case s == w.last && (s.Attempt == 0 || lasted < w.next):
		return Finding{}
	case s == w.last:
		for w.next <= lasted { // twice at once after the agent was stopped for a while
			w.next *= 2
		}
		return Finding{Kind: Silent, For: lasted}
	}
	told, same := w.next > w.limit, s.Attempt == w.last.Attempt
	w.last, w.since, w.next = s, now, w.limit
	switch {
	case !told:
		return Finding{}
	case same:
		return Finding{Kind: Heard, For: lasted}
	}
	return Finding{Kind: Ended, For: lasted}
}

// The time between two looks: a tenth of the limit, within these bounds.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
)

// Follow looks until ctx ends and tells of each finding.
func Follow(ctx context.Context, limit time.Duration, look func() Signs, tell func(Finding)) {
	w := newWatch(limit)
	ticker := time.NewTicker(min(max(limit/10, shortestPause), longestPause))
	defer ticker.Stop()
	for {
		if found := w.look(time.Now(), look()); found.Kind != Nothing {
			tell(found)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
