package registrytest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
)

// cutter is a proxy before a registry that ends every connection on which an answer is waited for longer than that, as
// HAProxy and nginx do.
type cutter struct {
	url   string
	after time.Duration

	mu   sync.Mutex
	cuts int
}

func cut(t *testing.T, s server, after time.Duration) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{url: "consul://" + l.Addr().String(), after: after}
	ctx, stop := context.WithCancel(context.Background())
	dial := dialer(s.URL())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { c.serve(ctx, client, dial) })
		}
	})
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		work.Wait()
	})
	return c
}

func (c *cutter) URL() string { return c.url }

func (c *cutter) serve(ctx context.Context, client net.Conn, dial func(context.Context, string, string) (net.Conn, error)) {
	defer client.Close()
	server, err := dial(ctx, "", "")
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close(); _ = server.Close() })
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		_ = pipe(server, client, func() { // its end is the connection's
			_ = server.SetReadDeadline(time.Now().Add(c.after))
		})
	}()
	if err := pipe(client, server, func() { _ = server.SetReadDeadline(time.Time{}) }); errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		c.cuts++
		c.mu.Unlock()
	}
	_ = client.Close()
	<-done
}

// pipe copies, and calls first before each piece is passed on.
func pipe(to io.Writer, from io.Reader, first func()) error {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			first()
			if _, err := to.Write(b[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// readsAreCut: behind a proxy that cuts reads long before the lost grace, a dead member is lost all the same, and nobody
// takes the registry for unreachable.
func readsAreCut(t *testing.T, s server) {
	proxy := cut(t, s, 300*time.Millisecond)
	a := newApp(t, proxy)
	a.facts.Times.Lost = 3 * time.Second
	all := a.assemble(t, 1)
	dead := all.without(all.conductor(t))[0]
	dead.membership.Close()
	kv := rawOf(t, s.URL())
	live, _, _ := kv.get(a.facts.App + "/live/" + dead.me.Instance.Component + "/" + string('0'+rune(dead.me.Instance.Index)))
	kv.destroy(live.Session) // as its end by time would
	rest := all.without(dead)
	rest.each(func(g *agent) { g.told(2, registry.ActWait) })
	if m := rest[0].member(dead.me.Instance.String()); m.Phase != registry.PhaseLost {
		t.Errorf("record %+v", m)
	}
	for _, g := range rest {
		if n := heard(g, func(registry.Unreachable) bool { return true }); n != 0 {
			t.Errorf("%s was out of contact %d times", g.name(), n)
		}
	}
	if n := proxy.count(); n < 5 {
		t.Errorf("%d reads were cut", n)
	}
}
