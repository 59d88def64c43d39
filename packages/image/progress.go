package image

import (
	"sync"
	"time"
)

// Progress is how far a pull is. Bytes are those of the blobs as the registry has them.
type Progress struct {
	Ref         string
	Done, Total int64 // bytes fetched and to be fetched; a layer that was there, or in a layout, counts in neither
	Layers      int   // of the image
	Ready       int   // of them, unpacked
	Waiting     int   // of them, being made by another process
}

// between is the least time from one report to the next.
const between = 300 * time.Millisecond

// tally counts and reports. Its methods are for any goroutine.
type tally struct {
	mu     sync.Mutex
	now    Progress
	last   time.Time
	report func(Progress)
}

func (t *tally) add(f func(*Progress)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.now)
	if t.report == nil || time.Since(t.last) < between {
		return
	}
	t.last = time.Now()
	t.report(t.now)
}

// finish reports the last state, whenever the one before was.
func (t *tally) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.report != nil {
		t.report(t.now)
	}
}

func (t *tally) fetched(n int64) { t.add(func(p *Progress) { p.Done += n }) }
