package consul

import (
	"context"
	"math/rand/v2"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// The pace of the conductor's blocking reads: their cost must not grow with the speed at which members join.
const (
	paceFew   = 20 * time.Millisecond
	paceMany  = 100 * time.Millisecond
	fewKeys   = 64
	paceReads = 5 // times the duration of the last read
)

// A reading of all names costs as much as the gang is large, so that a barrier that reads them at each arrival costs
// the square. While more than fewOpen members are missing, the conductor first waits for the key of one of them, drawn
// anew each time: all must come, and that one comes on average when half of the others have. So the number of readings
// grows with the logarithm of the gang, in whatever order its members arrive.
const (
	fewOpen = 4
	oneOpen = 10 * time.Second // at most: a member that has gone from the barrier must be noticed
	oneLook = 2 * time.Second  // between looks whether that member is waited for at all: it may have reported its end
)

// readiness is one reading of ready/<gen>/.
type readiness struct {
	gen int
	set map[registry.Instance]bool
	at  time.Time
}

// watches are the conductor's two blocking reads. Each channel holds the newest reading only.
type watches struct {
	ready   chan readiness
	asks    chan []registry.Ask
	trouble chan time.Time // since when the ready keys cannot be read
	open    atomic.Pointer[[]registry.Instance]

	work sync.WaitGroup
	gen  int                // the generation whose ready keys are watched; 0: none
	stop context.CancelFunc // of that watch
}

func (w *watches) init() {
	w.ready = make(chan readiness, 1)
	w.asks = make(chan []registry.Ask, 1)
	w.trouble = make(chan time.Time, 1)
	w.stop = func() {}
}

// close waits for the watches; their context has ended.
func (w *watches) close() {
	w.stop()
	w.work.Wait()
}

func (w *watches) start(ctx context.Context, g *gang) {
	w.work.Go(func() { w.watchAsks(ctx, g) })
}

// awaits tells which members the barrier lacks; none when the gang does not wait.
func (w *watches) awaits(open []registry.Instance) { w.open.Store(&open) }

// follow watches the ready keys of the directive's generation.
func (w *watches) follow(ctx context.Context, g *gang, d registry.Directive) {
	gen := d.Gen
	if d.Act == registry.ActStop {
		gen = 0
	}
	if gen == w.gen {
		return
	}
	w.stop()
	w.gen = gen
	if gen == 0 {
		return
	}
	during, stop := context.WithCancel(ctx)
	w.stop = stop
	w.work.Go(func() { w.watchReady(during, g, gen) })
}

func (w *watches) watchReady(ctx context.Context, g *gang, gen int) {
	prefix := g.keys.ready(gen)
	var index uint64
	var last map[registry.Instance]bool
	w.loop(ctx, w.trouble, func(ctx context.Context, anew bool) (int, error) {
		if anew {
			index = 0
		}
		if index > 0 {
			if err := w.awaitOne(ctx, g, gen, index, last); err != nil {
				return 0, err
			}
		}
		names, next, err := g.ready.blockNames(ctx, prefix, index, g.times.Wait)
		if err != nil {
			return 0, err
		}
		if next != index {
			last = setOf(instancesAt(prefix, names))
			latest(w.ready, readiness{gen: gen, set: last, at: time.Now()})
		}
		index = next
		return len(names), nil
	})
}

// awaitOne waits until one of many missing members is ready, which was not at the last reading, of that index.
func (w *watches) awaitOne(
	ctx context.Context, g *gang, gen int, index uint64, last map[registry.Instance]bool,
) error {
	var open []registry.Instance
	if told := w.open.Load(); told != nil { // after the last reading, or before it
		open = slices.DeleteFunc(slices.Clone(*told), func(in registry.Instance) bool { return last[in] })
	}
	if len(open) <= fewOpen {
		return nil
	}
	one := open[rand.N(len(open))]
	for end := time.Now().Add(oneOpen); time.Now().Before(end) && slices.Contains(*w.open.Load(), one); {
		look := min(oneLook, time.Until(end), g.times.Wait)
		pair, next, err := g.ready.blockKey(ctx, g.keys.readyOf(gen, one), index, look, byDefault)
		if err != nil || pair != nil {
			return err
		}
		index = next
		if err := pause(ctx, paceMany); err != nil { // Consul may answer for a key beside it
			return err
		}
	}
	return nil
}

func (w *watches) watchAsks(ctx context.Context, g *gang) {
	prefix := g.keys.asks()
	var index uint64
	silent := make(chan time.Time, 1) // who cannot read what was asked knows of the members all the same
	w.loop(ctx, silent, func(ctx context.Context, anew bool) (int, error) {
		if anew {
			index = 0
		}
		pairs, next, err := g.asks.blockList(ctx, prefix, index, g.times.Wait)
		if err != nil {
			return 0, err
		}
		if next != index {
			asks, err := asksOf(pairs)
			if err != nil {
				g.log.Warn("an ask is unreadable", "err", err)
			}
			latest(w.asks, asks)
		}
		index = next
		return max(len(pairs), fewKeys+1), nil
	})
}

// loop repeats a read, paced by how long it takes after its answer begins. A read that fails is repeated at once, for
// an answer without waiting: proxies cut reads that wait for long (HAProxy after 50 s). That it fails again is trouble.
func (w *watches) loop(
	ctx context.Context, trouble chan time.Time, read func(ctx context.Context, anew bool) (keys int, err error),
) {
	var b backoff
	failed, since := 0, time.Time{}
	for ctx.Err() == nil {
		asked, began := time.Now(), time.Now()
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotFirstResponseByte: func() { began = time.Now() },
		})
		n, err := read(traced, failed > 0)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if failed++; failed == 1 {
				since = asked
				continue
			}
			latest(trouble, since)
			_ = pause(ctx, b.next())
			continue
		}
		failed = 0
		b.reset()
		least := paceFew
		if n > fewKeys {
			least = paceMany
		}
		_ = pause(ctx, max(paceReads*time.Since(began), least))
	}
}

// latest puts v into a channel of one, and replaces a value that nobody has received. There is one sender.
func latest[T any](c chan T, v T) {
	for {
		select {
		case c <- v:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}

// blockList is blockKey for all keys under a prefix.
func (l *connection) blockList(
	ctx context.Context, prefix string, index uint64, wait time.Duration,
) (api.KVPairs, uint64, error) {
	var pairs api.KVPairs
	next, err := l.block(ctx, "watch "+prefix, index, wait, byDefault,
		func(q *api.QueryOptions) (meta *api.QueryMeta, err error) {
			pairs, meta, err = l.api.KV().List(prefix, q)
			return meta, err
		})
	return pairs, next, err
}
