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

// refusals counts how often the registry has refused the same, with nothing written in between. Once is a race that
// another has won. Again and again it is something that reading again does not mend.
type refusals struct {
	what  string
	count int
}

const mostRest = 30 * time.Second

// rest is how long to wait after a refusal before everything is read again: doubling from the second on, to 30 s.
func (r *refusals) rest(why error) time.Duration {
	if !isRefusal(why) {
		return 0
	}
	if what := why.Error(); what != r.what {
		*r = refusals{what: what}
	}
	r.count++
	if r.count < 2 {
		return 0
	}
	return min(time.Second<<min(r.count-2, 5), mostRest)
}
