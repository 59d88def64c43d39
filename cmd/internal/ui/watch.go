package ui

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// recheck is how often it is asked whether who asked is still let in: the answers of some requests are streams.
const recheck = 2 * time.Second

// watched are the requests that are under way, of callers who were let in.
type watched struct {
	mu  sync.Mutex
	all map[*watching]bool
}

type watching struct {
	by    *http.Request // that shows who asks
	still func() bool   // the same is let in
	end   context.CancelFunc
}

// add has a request end with what lets its caller in; done is called when it has been answered.
func (w *watched) add(r, by *http.Request, still func() bool) (same *http.Request, done func()) {
	ctx, end := context.WithCancel(r.Context())
	one := &watching{by, still, end}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[*watching]bool{}
	}
	w.all[one] = true
	return r.WithContext(ctx), func() {
		end()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, one)
	}
}

// end ends the requests that meet a condition.
func (w *watched) end(so func(*watching) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		if so(one) {
			one.end()
		}
	}
}

// watch ends the requests of those who are let in no more, or with other rights, until ctx is done.
func (w *watched) watch(ctx context.Context) {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.end(func(one *watching) bool { return !one.still() })
	}
}
