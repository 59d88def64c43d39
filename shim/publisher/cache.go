package publisher

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// fresh is how long a view answers all who ask: scripts poll, one for each member.
	fresh = time.Second
	// stale is how long the last view answers while the registry cannot be read: as long as a gang goes on without one.
	// Slider's master answered from its own memory; a STATUS that asks here must not fail, and end its instance, for
	// it.
	stale = 10 * time.Minute
	// patience bounds one read, and one ask to stop.
	patience = 10 * time.Second
)

// views reads the view at most once per fresh, for all who ask at once together.
type views struct {
	source viewSource

	mu      sync.Mutex
	flight  chan struct{} // closed at the end of the read under way; nil between reads
	last    View          // the newest that was read
	lastAt  time.Time
	triedAt time.Time
	err     error // of the newest try
}

// get answers from what is fresh, else waits for a read, its own or another's, as long as ctx lasts; where there is a
// view to answer from, not longer than that could be fresh.
func (v *views) get(ctx context.Context) (View, error) {
	v.mu.Lock()
	if v.flight == nil && (v.triedAt.IsZero() || time.Since(v.triedAt) >= fresh) {
		v.flight, v.triedAt = make(chan struct{}), time.Now()
		go v.read(context.WithoutCancel(ctx), v.flight) // who asked first may go before the others have their answer
	}
	f, enough := v.flight, (<-chan time.Time)(nil)
	if v.usable() {
		enough = time.After(fresh)
	}
	v.mu.Unlock()
	if f != nil {
		select {
		case <-f:
		case <-enough:
		case <-ctx.Done():
			return View{}, ctx.Err()
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil && !v.usable() {
		return View{}, fmt.Errorf("read the app: %w", v.err)
	}
	return v.last, nil
}

// usable tells that the last view may still answer.
func (v *views) usable() bool { return !v.lastAt.IsZero() && time.Since(v.lastAt) <= stale }

func (v *views) read(ctx context.Context, done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	started := time.Now()
	view, err := v.source.View(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.flight, v.err = nil, err
	if err == nil {
		v.last, v.lastAt = view, started
	}
}
