package consul

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// connection is one connection to the registry; its requests queue behind each other.
type connection struct {
	api     *api.Client
	http    *http.Client
	base    string        // scheme://host
	large   time.Duration // limits the reading of lists and raw keys
	limited atomic.Int64  // connections that the server refused with 429 before any request
	failed  atomic.Int64  // requests that the registry has not answered, or has refused for rights or rate
}

// connect makes a connection for small answers. It connects at the first request.
func connect(at registry.Address, t *token) (*connection, error) {
	return connectWith(at, t, callTime, func(*http.Transport) {})
}

// connectBulk makes a connection for large answers, which is closed soon after use.
func connectBulk(at registry.Address, t *token) (*connection, error) {
	return connectWith(at, t, largeTime, func(t *http.Transport) {
		t.ResponseHeaderTimeout, t.IdleConnTimeout = callTime, callTime
	})
}

func connectWith(
	at registry.Address, t *token, large time.Duration, adjust func(*http.Transport),
) (*connection, error) {
	scheme, host, network, dialed := endpoint(at)
	l := &connection{base: scheme + "://" + host, large: large}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, dialed)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: c, connection: l}, nil
		},
		MaxConnsPerHost:     1,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   false,
	}
	adjust(transport)
	// DefaultNonPooledConfig reads CONSUL_* for TLS and namespace; the address and the token are ours.
	config := api.DefaultNonPooledConfig()
	client, err := api.NewHttpClient(transport, config.TLSConfig)
	if err != nil {
		return nil, fmt.Errorf("registry TLS: %w", err)
	}
	client.Transport = &authorized{next: transport, token: t}
	config.Address, config.Scheme, config.HttpClient = host, scheme, client
	config.Token, config.TokenFile = t.now(), ""
	l.http = client
	if l.api, err = api.NewClient(config); err != nil {
		return nil, fmt.Errorf("registry %s: %w", at, err)
	}
	return l, nil
}

// endpoint is an address in the form of HTTP, and the network address to dial for it.
func endpoint(at registry.Address) (scheme, host, network, dialed string) {
	if path, ok := at.Socket(); ok {
		return "http", "localhost", "unix", path
	}
	host, _ = at.HostPort()
	if at.TLS() {
		return "https", host, "tcp", host
	}
	return "http", host, "tcp", host
}

func (l *connection) close() { l.http.CloseIdleConnections() }

// watchedConn notices the answer 429 that Consul sends on a connection beyond its limit, before it reads any request.
// net/http reports such a connection as broken, without the reason.
type watchedConn struct {
	net.Conn
	connection *connection
	read       atomic.Bool // bytes were read
	wrote      atomic.Bool // bytes were written
}

const refusal429 = "HTTP/1.1 429"

func (c *watchedConn) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 || c.read.Swap(true) || !c.look(b[:n]) || c.wrote.Load() {
		return n, err
	}
	return 0, registry.ErrTooManyConnections // an answer without a request: net/http would only log it
}

// Close looks for an answer that was never read because writing failed first.
func (c *watchedConn) Close() error {
	if !c.read.Swap(true) {
		c.peek()
	}
	return c.Conn.Close()
}

func (c *watchedConn) peek() {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		buf := make([]byte, len(refusal429))
		// The descriptor is non-blocking: an empty queue answers at once.
		if n, err := syscall.Read(int(fd), buf); err == nil && n > 0 {
			c.look(buf[:n])
		}
	})
}

func (c *watchedConn) look(b []byte) bool {
	if !strings.HasPrefix(string(b), refusal429) {
		return false
	}
	c.connection.limited.Add(1)
	return true
}
