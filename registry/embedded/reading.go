package embedded

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"
)

// Times of Consul's blocking reads.
const (
	defaultWait    = 5 * time.Minute
	maxWait        = 10 * time.Minute
	jitterFraction = 16
)

// waiting is what a reader asked for: index 0 answers at once.
type waiting struct {
	index uint64
	wait  time.Duration
}

// parseWaiting reads the query as Consul does, in its order. Stale, consistent and default reads are the same here,
// because there is one copy of everything.
func parseWaiting(q url.Values) (w waiting, err error) {
	if q.Has("stale") && q.Has("consistent") {
		return w, badRequest("Cannot specify ?stale with ?consistent, conflicting semantics.")
	}
	if text := q.Get("wait"); text != "" {
		if w.wait, err = time.ParseDuration(text); err != nil {
			return w, badRequest("Invalid wait time")
		}
	}
	if text := q.Get("index"); text != "" {
		if w.index, err = strconv.ParseUint(text, 10, 64); err != nil {
			return w, badRequest("Invalid index")
		}
	}
	return w, nil
}

// length is how long the reader waits: up to a sixteenth longer than asked, so that readers that came together do not
// all return together.
func (w waiting) length() time.Duration {
	d := min(w.wait, maxWait)
	if d <= 0 {
		d = defaultWait
	}
	if jitter := d / jitterFraction; jitter > 0 {
		d += rand.N(jitter)
	}
	return d
}
