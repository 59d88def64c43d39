package sandbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// watchPeriod is how often the watchdog looks.
const watchPeriod = time.Second

// memoryWatch is the boundary of an engine without a cgroup: once a second, from each start to its exit, it reads how
// much memory the processes hold, and above the limit it kills them all. A process that grows faster may hold more.
type memoryWatch struct {
	noBoundary
	read   func() (int64, error) // bytes that all processes hold now
	period time.Duration
	end    func() error // kills all processes
	logger *slog.Logger

	mu       sync.Mutex
	limit    int64         // bytes; 0: nothing is watched
	stop     chan struct{} // closed at the end of the start under way; nil: none is
	peak     int64
	fired    bool
	watching sync.WaitGroup
}

// watchMemory holds the descendants of a guard to a limit in bytes, 0 for none.
func watchMemory(guard int, limit int64) *memoryWatch {
	return &memoryWatch{limit: limit, period: watchPeriod, read: func() (int64, error) {
		return proc.Host{}.Memory(guard)
	}}
}

// bind says what kills the processes; it comes before the first begin.
func (w *memoryWatch) bind(g *Guard) { w.end, w.logger = g.Kill, g.options.Logger }

func (w *memoryWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel()
	w.peak, w.fired = 0, false
	if w.limit == 0 {
		return
	}
	stop := make(chan struct{})
	w.stop = stop
	w.watching.Go(func() { w.watch(stop) })
}

func (w *memoryWatch) cancel() {
	if w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
}

// remove ends the watching, for a guard that ended before its process did.
func (w *memoryWatch) remove(context.Context) error {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.watching.Wait()
	return nil
}

// usage is read at the exit, which ends the watching.
func (w *memoryWatch) usage() (cgroup.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel()
	if w.limit == 0 {
		return cgroup.Usage{}, nil
	}
	u := cgroup.Usage{Peak: w.peak, Limit: w.limit, By: "watchdog"}
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

func (w *memoryWatch) watch(stop chan struct{}) {
	ticker := time.NewTicker(w.period)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		held, err := w.read()
		if err != nil {
			w.logger.Warn("memory of the processes not read", "err", err)
			continue
		}
		if !w.over(stop, held) {
			continue
		}
		if err := w.end(); err != nil {
			w.logger.Warn("kill of processes above their memory limit failed", "err", err)
		}
		return
	}
}

// over notes what is held and tells whether it is above the limit, in a start that has not ended meanwhile.
func (w *memoryWatch) over(stop chan struct{}, held int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != stop {
		return false
	}
	w.peak = max(w.peak, held)
	w.fired = held > w.limit
	return w.fired
}
