package shim

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/notify/message"
	"github.com/muster-agent/muster/shim/wording"
)

// barrierLog says in the agent's log whom the agent waits for at the barrier: after firstWait, when a gang that is
// started together is not named any more, and then after each nextWait.
type barrierLog struct {
	state   func() machine.State
	ask     func(context.Context) (absent []string, asked bool, err error)
	log     *slog.Logger
	changed chan struct{} // holds one token when the state has changed
}

const (
	firstWait = time.Second
	nextWait  = time.Minute
)

// mostMissing is how many missing members a line names.
const mostMissing = 20

func newBarrierLog(
	state func() machine.State, ask func(context.Context) ([]string, bool, error), log *slog.Logger,
) *barrierLog {
	return &barrierLog{state: state, ask: ask, log: log, changed: make(chan struct{}, 1)}
}

// moved has the state looked at again. It never blocks.
func (b *barrierLog) moved() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// start follows the state until the function that it returns is called.
func (b *barrierLog) start(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { b.run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func (b *barrierLog) run(ctx context.Context) {
	next := time.NewTimer(firstWait)
	next.Stop()
	var since time.Time // at the barrier; zero: not there
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
			switch at := message.AtBarrier(b.state()); {
			case !at:
				since = time.Time{}
				next.Stop()
			case since.IsZero():
				since = time.Now()
				next.Reset(firstWait)
			}
		case <-next.C:
			b.say(ctx, since)
			next.Reset(nextWait)
		}
	}
}

func (b *barrierLog) say(ctx context.Context, since time.Time) {
	absent, asked, err := b.ask(ctx)
	waited := time.Since(since).Round(time.Second)
	switch {
	case ctx.Err() != nil || !message.AtBarrier(b.state()): // the gang came meanwhile
	case !asked:
		b.log.Info("waiting for the gang; the conductor's agent logs who is missing", "waited", waited)
	case err != nil:
		b.log.Info("waiting for the gang; the registry does not say who is missing", "waited", waited, "err", err)
	case len(absent) == 0:
		b.log.Info("waiting for the gang: all members have an agent, and some still prepare their container",
			"waited", waited)
	default:
		b.log.Info("waiting for members that no agent has joined as", "missing", wording.First(absent, mostMissing),
			"count", len(absent), "waited", waited)
	}
}
