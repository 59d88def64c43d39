package sandbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// watchPeriod is how often the watchdog looks.
const watchPeriod = time.Second

// memoryWatch is the boundary of an engine without a cgroup: once a second, from each start to its exit, it reads how
// much memory the processes hold, and above the limit it has them all killed. What grows faster than it looks
// gets further.
type memoryWatch struct {
	nothing
	read   func() (int64, error) // bytes that all processes hold now
	period time.Duration
	end    func() error // of all processes
	gone   <-chan struct{}
	logger *slog.Logger

	mu    sync.Mutex
	limit int64              // bytes; 0: nothing is watched
	stop  context.CancelFunc // of the start under way; nil: none
	peak  int64
	fired bool
}

// watchMemory holds the descendants of a guard to a limit in bytes, 0 for none.
func watchMemory(guard int, limit int64) *memoryWatch {
	return &memoryWatch{limit: limit, period: watchPeriod, read: func() (int64, error) { return proc.Host{}.Memory(guard) }}
}

// bind tells whom to kill by; it comes before the first begin.
func (w *memoryWatch) bind(g *Guard) { w.end, w.gone, w.logger = g.Kill, g.ended, g.options.Logger }

func (w *memoryWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel()
	w.peak, w.fired = 0, false
	if w.limit == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	go w.watch(ctx)
}

func (w *memoryWatch) cancel() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// usage is asked for at the exit: that ends the watching.
func (w *memoryWatch) usage() (Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel()
	if w.limit == 0 {
		return Usage{}, nil
	}
	u := Usage{Peak: w.peak, Limit: w.limit, By: "watchdog"}
	if w.fired {
		u.OOMKills = 1
	}
	return u, nil
}

func (w *memoryWatch) grow(memory int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = memory
	return nil
}

func (w *memoryWatch) watch(ctx context.Context) {
	ticker := time.NewTicker(w.period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.gone:
			return
		case <-ticker.C:
		}
		held, err := w.read()
		if err != nil {
			w.logger.Warn("memory not read", "err", err)
			continue
		}
		if !w.over(ctx, held) {
			continue
		}
		if err := w.end(); err != nil {
			w.logger.Warn("kill above memory limit", "err", err)
		}
		return
	}
}

// over notes what is held and tells whether that is too much, in a start that has not ended meanwhile.
func (w *memoryWatch) over(ctx context.Context, held int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	w.peak = max(w.peak, held)
	w.fired = held > w.limit
	return w.fired
}
