package login

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
)

// What strangers may cost the registry: each look at it is one that its leader has to answer.
const (
	lookupsAtOnce = 4                      // an unknown key keeps its turn for refusalPause
	refusalPause  = 200 * time.Millisecond // so unknown keys are 20 looks in a second, of all clients together
	refusedFor    = 5 * time.Second        // a key that was unknown is not looked up again
	mostUnknown   = 1024                   // keys that are known to be unknown
)

// lookups finds out whose keys are, so many at a time.
type lookups struct {
	ask   func(ctx context.Context, key string) (who string, err error)
	turns chan struct{}

	mu      sync.Mutex
	unknown map[string]time.Time // and since when
}

func newLookups(ask func(ctx context.Context, key string) (who string, err error)) *lookups {
	return &lookups{ask: ask, turns: make(chan struct{}, lookupsAtOnce), unknown: map[string]time.Time{}}
}

func (l *lookups) admit(ctx context.Context, key string) (who string, err error) {
	select {
	case l.turns <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-l.turns }()
	if err = registry.ErrNoLogin; !l.refused(key) {
		who, err = l.ask(ctx, key)
	}
	if err == nil {
		return who, nil
	}
	if errors.Is(err, registry.ErrNoLogin) {
		l.note(key)
	}
	pause(ctx, refusalPause)
	return "", err
}

// refused tells whether a key was unknown a moment ago.
func (l *lookups) refused(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.unknown[key]
	return ok && time.Since(at) < refusedFor
}

func (l *lookups) note(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.unknown[key]; ok && time.Since(at) < refusedFor {
		return // it is looked up again, however often it is tried
	}
	if len(l.unknown) >= mostUnknown {
		clear(l.unknown)
	}
	l.unknown[key] = time.Now()
}
