package history

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/tests/netns"
)

// proxyAddress is where agents find Consul, on each host's own loopback.
const proxyAddress = "127.0.0.1:8500"

// proxy is a host's way to Consul: it passes each connection on to the first server that takes it, beginning with
// another one on each host. A connection on which an answer is waited for longer than cut is ended, as HAProxy and nginx
// do; 0: never.
type proxy struct {
	net     *netns.Net
	host    int
	servers []string // HOST:PORT, the host's own choice first
	cut     time.Duration
	cuts    atomic.Int64

	listener net.Listener
	work     sync.WaitGroup
}

// serve begins to pass connections on; it goes on until the context ends.
func (p *proxy) serve(ctx context.Context) error {
	err := p.net.Do(p.host, func() (err error) {
		p.listener, err = net.Listen("tcp4", proxyAddress)
		return err
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = p.listener.Close() })
	p.work.Go(func() {
		for {
			client, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.pass(ctx, client) })
		}
	})
	return nil
}

// dial reaches a server from the host.
func (p *proxy) dial() (server net.Conn, err error) {
	for _, address := range p.servers {
		err = p.net.Do(p.host, func() (err error) {
			server, err = net.DialTimeout("tcp4", address, time.Second)
			return err
		})
		if err == nil {
			return server, nil
		}
	}
	return nil, err
}

func (p *proxy) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := p.dial()
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close(); _ = server.Close() })
	defer stop()
	var asking sync.WaitGroup
	asking.Go(func() {
		defer server.Close()
		_ = pipe(server, client, func() {
			if p.cut > 0 {
				_ = server.SetReadDeadline(time.Now().Add(p.cut))
			}
		})
	})
	err = pipe(client, server, func() { _ = server.SetReadDeadline(time.Time{}) })
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		p.cuts.Add(1)
	}
	_ = client.Close()
	asking.Wait()
}

// pipe copies, and calls before each piece is passed on.
func pipe(to io.Writer, from io.Reader, before func()) error {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			before()
			if _, err := to.Write(b[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}
