package consul

import (
	"context"
	"math/rand/v2"
	"time"
)

// pause waits for d, or returns the error of the context.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// jitter is a random duration between low and high.
func jitter(low, high time.Duration) time.Duration {
	return low + rand.N(high-low+1)
}

// backoff grows from 50 ms to 2 s, half of it random: a thousand agents that lost their registry at once must not
// return at once.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, 50*time.Millisecond), 2*time.Second)
	return jitter(b.last/2, b.last)
}

func (b *backoff) reset() { b.last = 0 }
