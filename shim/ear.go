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
	"github.com/muster-agent/muster/shim/signals"
)

// wish is that of somebody outside that the agent ends.
type wish struct {
	signal syscall.Signal
	by     string // who wishes it, where no signal said so
}

// Error is the wish as what ends an agent that has not joined yet.
func (w wish) Error() string {
	if w.by != "" {
		return w.by + ": the agent had not joined yet"
	}
	return registry.SignalName(int(w.signal)) + " from outside: the agent had not joined yet"
}

// code is the exit code of an agent that ends for it at once.
func (w wish) code() int { return 128 + int(w.signal) }

// endedEarly is how an agent ends that could not be prepared: by what went wrong, or by the wish that cancelled ctx.
func endedEarly(ctx context.Context, code int, err error) (int, error) {
	if ctx.Err() == nil {
		return code, err
	}
	w, ok := errors.AsType[wish](context.Cause(ctx))
	if !ok {
		w = contextEnded
	}
	return w.code(), w
}

// contextEnded is the wish that the end of Run's context is.
var contextEnded = wish{syscall.SIGTERM, "the context of the agent has ended"}

// ear hears signals, the end of the lifeline and the end of Run's context, from Run's first line to its last. What a
// wish does depends on how far the agent is.
type ear struct {
	signals  <-chan os.Signal
	lifeline io.ReadCloser
	done     chan struct{}
	all      sync.WaitGroup

	mu  sync.Mutex
	act func(wish)
}

// hear begins to hear; close ends it.
func hear(ctx context.Context, o Options, act func(wish)) *ear {
	e := &ear{signals: o.Signals, lifeline: o.Lifeline, done: make(chan struct{}), act: act}
	e.all.Go(func() { e.hearSignals(ctx) })
	if e.lifeline != nil {
		e.all.Go(e.hearLifeline)
	}
	return e
}

// from has wishes do something else from now on. None is lost between the two.
func (e *ear) from(act func(wish)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.act = act
}

func (e *ear) tell(w wish) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.act(w)
}

func (e *ear) hearSignals(ctx context.Context) {
	var repeat signals.Repeat
	heard, ended := e.signals, ctx.Done()
	for {
		select {
		case sig, open := <-heard:
			if !open {
				heard = nil // no more will come
				continue
			}
			if number, ok := sig.(syscall.Signal); ok && !repeat.Again(sig, time.Now()) {
				e.tell(wish{signal: number})
			}
		case <-ended:
			ended = nil
			e.tell(contextEnded)
		case <-e.done:
			return
		}
	}
}

func (e *ear) hearLifeline() {
	_, err := e.lifeline.Read(make([]byte, 1)) // only its end matters
	select {
	case <-e.done: // close has ended the read
		return
	default:
	}
	if !errors.Is(err, os.ErrClosed) {
		e.tell(wish{syscall.SIGTERM, "the program that started this agent has ended"})
	}
}

// close ends the hearing and closes the lifeline.
func (e *ear) close() {
	close(e.done)
	if e.lifeline != nil {
		_ = e.lifeline.Close() // ends the read
	}
	e.all.Wait()
}
