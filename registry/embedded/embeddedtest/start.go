package embeddedtest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/muster-agent/muster/registry/embedded"
)

// URL is what requests to the registry begin with; only the client of Start can reach it.
const URL = "http://embedded.invalid"

// Start serves an empty registry until the test ends. All requests of the client go to it.
func Start(t testing.TB) *http.Client {
	t.Helper()
	registry := embedded.New(embedded.Options{})
	l := &pipes{dialled: make(chan net.Conn), closed: make(chan struct{})}
	web := &http.Server{Handler: registry.Handler()}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(l) }) // ends with http.ErrServerClosed
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		registry.Close()
		transport.CloseIdleConnections()
		// A server that refused a body keeps its connection for a while: inside a bubble its goroutine
		// must have ended with the test.
		if err := web.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return &http.Client{Transport: transport}
}

// pipes is a listener whose connections are net.Pipes.
type pipes struct {
	dialled   chan net.Conn
	closed    chan struct{}
	closeOnce sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.dialled <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.closeOnce.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
