package registrytest_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// counter forwards connections and counts how many are open at once.
type counter struct {
	address string

	mu        sync.Mutex
	open, top int
}

func newCounter(t testing.TB, to string) *counter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &counter{address: l.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { c.forward(near, to) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return c
}

func (c *counter) forward(near net.Conn, to string) {
	c.add(1)
	defer c.add(-1)
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far) // ends with either side
		_ = near.Close()
	})
	_, _ = io.Copy(far, near)
	_ = far.Close()
	back.Wait()
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
	c.top = max(c.top, c.open)
}

func (c *counter) most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.top
}
