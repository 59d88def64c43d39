package wait

import (
	"context"
	"time"
)

// every is the time between two looks.
const every = 300 * time.Millisecond

// Until asks again until so answers true; false: ctx ended before that.
func Until(ctx context.Context, so func() bool) bool {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// For waits for a time; an error: ctx ended before that.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
