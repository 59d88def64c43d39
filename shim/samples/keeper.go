package samples

import (
	"context"
	"sync"
	"time"
)

// Reading is what was read at one moment.
type Reading struct {
	Memory int64         // bytes; unknown: not read
	CPU    time.Duration // processor time since some start; unknown: not read
	GPUs   []GPU
}

// Keeper takes the samples of one instance. Its methods may be called from any goroutine.
type Keeper struct {
	read func(context.Context) (Reading, bool)
	now  func() time.Time

	watching sync.WaitGroup

	mu   sync.Mutex
	ring *ring
	cpu  time.Duration // of the last reading
	at   time.Time     // of the last reading; zero: there is none

	total total
}

// New has nothing yet. read is asked at each tick, and answers false where there is nothing to read.
func New(read func(context.Context) (Reading, bool), now func() time.Time) *Keeper {
	return &Keeper{read: read, now: now, ring: usualRing(), cpu: unknown, total: total{peak: unknown}}
}

// every is the distance of two samples.
const every = 5 * time.Second

// Watch takes samples until ctx ends.
func (k *Keeper) Watch(ctx context.Context) {
	k.watching.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			k.look(ctx)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// Close waits for the end of Watch.
func (k *Keeper) Close() { k.watching.Wait() }

// look takes one sample. The first after a pause only notes the processor time, from which the next one counts.
func (k *Keeper) look(ctx context.Context) {
	r, ok := k.read(ctx)
	if ctx.Err() != nil {
		return
	}
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.at.IsZero()
	cores := coresOf(r.CPU-k.cpu, now.Sub(k.at))
	if k.cpu == unknown || r.CPU == unknown {
		cores = unknown
	}
	if !ok {
		k.at, k.cpu = time.Time{}, unknown
		return
	}
	k.at, k.cpu = now, r.CPU
	if first {
		cores = unknown
	}
	k.total.add(r, cores)
	if !first {
		k.ring.add(sample{At: now.Unix(), Memory: r.Memory, Cores: cores, GPUs: r.GPUs})
	}
}

// coresOf is how many processors were busy on the average. A count that went back is that of another start.
func coresOf(used, passed time.Duration) float64 {
	if used < 0 || passed <= 0 {
		return unknown
	}
	return used.Seconds() / passed.Seconds()
}

// GPUs are those of the newest sample.
func (k *Keeper) GPUs() []GPU {
	k.mu.Lock()
	defer k.mu.Unlock()
	if newest := k.ring.levels[0].all; len(newest) > 0 && !k.at.IsZero() {
		return newest[len(newest)-1].GPUs
	}
	return nil
}

// Table is the samples after a second of Unix time, or, below 0, those of the last so many seconds; without the
// instance's name and limits.
func (k *Keeper) Table(since int64) Table {
	if since < 0 {
		since += k.now().Unix()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return tableOf(k.ring.after(since))
}
