package shim

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/signals"
)

// stopRequest asks the agent, from outside, to end.
type stopRequest struct {
	signal syscall.Signal
	by     string // what asks for it, where it is no signal
}

// Error is the cause of the end of an agent that has not joined yet.
func (r stopRequest) Error() string {
	if r.by != "" {
		return r.by + ": the agent had not joined yet"
	}
	return registry.SignalName(int(r.signal)) + " from outside: the agent had not joined yet"
}

// code is the exit code of an agent that ends at once on this request.
func (r stopRequest) code() int { return 128 + int(r.signal) }

// endedEarly is how an agent ends that could not be prepared: by an error, or by the request that cancelled ctx.
func endedEarly(ctx context.Context, codes exit.Map, code int, err error) (int, error) {
	if ctx.Err() == nil {
		return codes.Apply(code, ""), err
	}
	r, ok := errors.AsType[stopRequest](context.Cause(ctx))
	if !ok {
		r = contextEnded
	}
	return codes.Apply(r.code(), registry.ClassLauncher), r
}

// contextEnded is the request that the end of Run's context stands for.
var contextEnded = stopRequest{syscall.SIGTERM, "the context of the agent has ended"}

// stopListener receives signals, the end of the lifeline and the end of Run's context, from Run's first line to its
// last. What a request does depends on how far the agent is.
type stopListener struct {
	signals  <-chan os.Signal
	lifeline io.ReadCloser
	done     chan struct{}
	all      sync.WaitGroup

	mu  sync.Mutex
	act func(stopRequest)
}

// listen starts the listener; close ends it.
func listen(ctx context.Context, o Options, act func(stopRequest)) *stopListener {
	l := &stopListener{signals: o.Signals, lifeline: o.Lifeline, done: make(chan struct{}), act: act}
	l.all.Go(func() { l.receive(ctx) })
	if l.lifeline != nil {
		l.all.Go(l.watchLifeline)
	}
	return l
}

// handle replaces what a request does. No request is lost in between.
func (l *stopListener) handle(act func(stopRequest)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.act = act
}

func (l *stopListener) deliver(r stopRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.act(r)
}

func (l *stopListener) receive(ctx context.Context) {
	var repeat signals.Repeat
	received, ended := l.signals, ctx.Done()
	for {
		select {
		case sig, open := <-received:
			if !open {
				received = nil // no more will come
				continue
			}
			if number, ok := sig.(syscall.Signal); ok && !repeat.Again(sig, time.Now()) {
				l.deliver(stopRequest{signal: number})
			}
		case <-ended:
			ended = nil
			l.deliver(contextEnded)
		case <-l.done:
			return
		}
	}
}

func (l *stopListener) watchLifeline() {
	_, err := l.lifeline.Read(make([]byte, 1)) // only its end matters
	select {
	case <-l.done: // close has ended the read
		return
	default:
	}
	if !errors.Is(err, os.ErrClosed) {
		l.deliver(stopRequest{syscall.SIGTERM, "the program that started this agent has ended"})
	}
}

// close ends the listener and closes the lifeline.
func (l *stopListener) close() {
	close(l.done)
	if l.lifeline != nil {
		_ = l.lifeline.Close() // ends the read
	}
	l.all.Wait()
}
