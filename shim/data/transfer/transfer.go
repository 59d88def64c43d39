package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// usualParallel is how many files are copied at a time, as HBox's thread numbers have it.
const usualParallel = 10

// usualRetries is how often a file without progress is tried again: long enough for a server that restarts, about a
// minute.
const usualRetries = 7

// Times of a transfer.
const (
	Stall   = 2 * time.Minute  // time without a byte of a file until it is tried again
	reports = 10 * time.Second // between two reports
)

// waits are the pauses between two tries.
var waits = store.Backoff{First: 500 * time.Millisecond, Longest: 30 * time.Second}

// copyBuffer is how much is read at once, in bytes.
const copyBuffer = 256 << 10

// Transfer says how files are moved; the zero value uses the defaults.
type Transfer struct {
	Parallel int                    // files at a time; 0: usualParallel
	Retries  int                    // 0: usualRetries; negative: none
	Stall    time.Duration          // 0: Stall
	Report   func(Progress)         // gets the progress every 10 s and at the end; may be nil
	Again    func(file, why string) // is called for each file that is tried again, from any goroutine; may be nil
	// Moved is called with bytes as they have been moved, from any goroutine; may be nil.
	Moved func(file string, bytes int64)
	// Ledger records what Bring need not bring again; nil: Bring brings all.
	Ledger *Ledger
}

func (t Transfer) parallel() int { return cmp.Or(t.Parallel, usualParallel) }

func (t Transfer) retries() int { return max(cmp.Or(t.Retries, usualRetries), 0) }

// Again decides after the n-th failed try at a file, n from 1, whether to try again; it may wait before it answers.
// nil: no.
type Again func(ctx context.Context, file string, failed int, err error) bool

// Persevere is the Again of copied files: a transient error is tried again, later each time.
func (t Transfer) Persevere(ctx context.Context, file string, failed int, err error) bool {
	if !store.Transient(err) || failed > t.retries() {
		return false
	}
	if t.Again != nil {
		t.Again(file, err.Error())
	}
	return waits.Wait(ctx, failed) == nil
}

// Progress is the progress of a transfer.
type Progress struct {
	Files, All int   // complete ones, and of how many
	Bytes      int64 // moved, including those of failed tries
	Took       time.Duration
	Ended      bool // this is the last report
}

// Rate is in bytes a second.
func (p Progress) Rate() int64 {
	if p.Took <= 0 {
		return 0
	}
	return int64(float64(p.Bytes) / p.Took.Seconds())
}

// String is like `12 of 1000 files, 45.0 MiB, 4.5 MiB/s`.
func (p Progress) String() string {
	const mib = 1 << 20
	return fmt.Sprintf("%d of %d files, %.1f MiB, %.1f MiB/s", p.Files, p.All, float64(p.Bytes)/mib,
		float64(p.Rate())/mib)
}

// progress counts what a transfer does.
type progress struct {
	how          Transfer
	all          int
	begun        time.Time
	files, bytes atomic.Int64
}

func (p *progress) now(ended bool) Progress {
	return Progress{
		Files: int(p.files.Load()), All: p.all, Bytes: p.bytes.Load(), Took: time.Since(p.begun),
		Ended: ended,
	}
}

// run does n things, several at a time, and reports. The first error cancels the others.
func (t Transfer) run(ctx context.Context, n int, do func(ctx context.Context, p *progress, i int) error) error {
	if n == 0 {
		return ctx.Err()
	}
	p := &progress{how: t, all: n, begun: time.Now()}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p.report(over)
	}()
	err := each(ctx, n, t.parallel(), func(ctx context.Context, i int) error {
		err := do(ctx, p, i)
		if err == nil {
			p.files.Add(1)
		}
		return err
	})
	close(over)
	<-done
	return err
}

func (p *progress) report(over <-chan struct{}) {
	if p.how.Report == nil {
		return
	}
	ticker := time.NewTicker(reports)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.how.Report(p.now(false))
		case <-over:
			p.how.Report(p.now(true))
			return
		}
	}
}

// attempt is one try at one file.
type attempt struct {
	p    *progress
	file string
	beat chan struct{}
}

// moved counts bytes that were moved.
func (a *attempt) moved(n int) {
	if n <= 0 {
		return
	}
	a.p.bytes.Add(int64(n))
	if a.p.how.Moved != nil {
		a.p.how.Moved(a.file, int64(n))
	}
	select {
	case a.beat <- struct{}{}:
	default:
	}
}

// while does something that moves no bytes and ends by itself, as a store that checks its content.
func (a *attempt) while(do func() error) error {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(reports)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				select {
				case a.beat <- struct{}{}:
				default:
				}
			}
		}
	}()
	err := do()
	close(over)
	<-done
	return err
}

// persist retries a file until it is complete, until an error that a retry does not help, or until there is no more
// progress. do tells how far it is: a try that got further than those before does not count.
func (p *progress) persist(
	ctx context.Context, file string, do func(ctx context.Context, a *attempt) (far int64, err error),
) error {
	best := int64(0)
	for failed := 0; ; {
		far, err := p.try(ctx, file, do)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed++; far > best {
			best, failed = far, 1
		}
		if !store.Transient(err) || failed > p.how.retries() {
			return err
		}
		if p.how.Again != nil {
			p.how.Again(file, err.Error())
		}
		if err := waits.Wait(ctx, failed); err != nil {
			return err
		}
	}
}

// try is one attempt, cancelled when no byte moves for the time of a stall.
func (p *progress) try(
	ctx context.Context, file string, do func(ctx context.Context, a *attempt) (int64, error),
) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{p: p, file: file, beat: make(chan struct{}, 1)}
	stall := cmp.Or(p.how.Stall, Stall)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(stall)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.beat:
				timer.Reset(stall)
			case <-timer.C:
				cancel(fmt.Errorf("%w: nothing moved for %s", store.ErrUnreachable, stall))
			}
		}
	}()
	far, err := do(ctx, a)
	if cause := context.Cause(ctx); err != nil && cause != nil && errors.Is(cause, store.ErrUnreachable) {
		if !errors.Is(err, cause) { // what it did when it was cancelled
			cause = fmt.Errorf("%w: %v", cause, err) //nolint:errorlint // it is the stall that says what to do
		}
		err = cause
	}
	cancel(nil)
	<-ended
	return far, err
}

// each does n things, parallel at a time, and returns the first error, which cancels the others.
func each(ctx context.Context, n, parallel int, do func(ctx context.Context, i int) error) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var first error
	var once sync.Once
	next := make(chan int)
	var all sync.WaitGroup
	for range min(max(parallel, 1), n) {
		all.Go(func() {
			for i := range next {
				if err := do(within, i); err != nil {
					once.Do(func() { first = err }) // it names the file, where the context's own cause does not
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && within.Err() == nil; i++ {
		select {
		case next <- i:
		case <-within.Done():
		}
	}
	close(next)
	all.Wait()
	if first != nil {
		return first
	}
	return context.Cause(ctx)
}

// locationOf is a path of a store with its filesystem, if it is not on this host.
func locationOf(in store.Store, path string) string {
	if located, ok := in.(store.Located); ok {
		return located.URL(path)
	}
	return path
}
