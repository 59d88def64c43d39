package store

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/muster-agent/muster/shim/wait"
)

// Backoff is the time between two tries: it begins with First, is doubled after each, up to Longest, and a random half
// of it is left off, so that many who lost the same server do not come back at once.
type Backoff struct{ First, Longest time.Duration }

// Time is how long to wait after so many failures.
func (b Backoff) Time(failed int) time.Duration {
	most := b.First
	for range min(failed, 10) {
		most = min(2*most, b.Longest)
	}
	return most/2 + rand.N(most/2) //nolint:gosec // no secret
}

// Wait waits so long, unless ctx ends: its cause is the error then.
func (b Backoff) Wait(ctx context.Context, failed int) error {
	return wait.For(ctx, b.Time(failed))
}

// DefaultRetries is how often a transfer is tried again that gets no further: with DefaultBackoff a server that is
// restarted is waited for about half a minute.
const DefaultRetries = 6

// DefaultBackoff is the time between two tries of a transfer.
var DefaultBackoff = Backoff{First: 500 * time.Millisecond, Longest: 30 * time.Second}

// Reader ends a long read with its context.
func Reader(ctx context.Context, r io.Reader) io.Reader { return untilDone{ctx, r} }

type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (c untilDone) Read(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(b)
}

// Located is a store that knows the URL of a path in it.
type Located interface{ URL(path string) string }

// resumable is a file of a store that can be written on after an error, from the byte on that it tells. Everything
// after that is under this context.
type resumable interface {
	Resume(ctx context.Context) (at int64, err error)
}

// Resume goes on with a file that broke; nil is none. Any error but a transient one says that it has to be written from
// its start.
func Resume(ctx context.Context, w io.WriteCloser) (at int64, err error) {
	if r, ok := w.(resumable); ok {
		return r.Resume(ctx)
	}
	return 0, errors.ErrUnsupported
}
