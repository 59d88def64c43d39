package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// shutdownGrace is how long Serve lets running requests finish when it ends.
const shutdownGrace = 2 * time.Second

// Serve serves a new, empty registry on the listener until the context ends. Then it answers the waiting readers, lets
// other requests finish for two seconds, and returns nil. It returns an error if the listener is not local or breaks.
// It always closes the listener.
func Serve(ctx context.Context, o Options) error {
	if err := local(o.Listener.Addr()); err != nil {
		return errors.Join(err, o.Listener.Close())
	}
	s := New(o)
	defer s.Close()
	requests := newBusy()
	web := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ConnState:         requests.note,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	broken := make(chan error, 1)
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { broken <- web.Serve(o.Listener) })
	select {
	case err := <-broken:
		return fmt.Errorf("serve on %s: %w", o.Listener.Addr(), errors.Join(err, web.Close()))
	case <-ctx.Done():
	}
	s.Close()
	closed := o.Listener.Close()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	requests.wait(grace)
	_ = web.Close() // closes the listener again, which is an error
	return closed
}

// busy tracks the connections with a running request. http.Server.Shutdown is not used, because it waits five seconds
// for connections that a client opened and never used.
type busy struct {
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	changed chan struct{}
}

func newBusy() *busy {
	return &busy{conns: map[net.Conn]struct{}{}, changed: make(chan struct{}, 1)}
}

func (b *busy) note(c net.Conn, state http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if state == http.StateActive {
		b.conns[c] = struct{}{}
		return
	}
	delete(b.conns, c)
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *busy) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns)
}

// wait returns when no request is running or the context ends.
func (b *busy) wait(ctx context.Context) {
	for b.count() > 0 {
		select {
		case <-b.changed:
		case <-ctx.Done():
			return
		}
	}
}
