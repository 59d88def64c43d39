package consul

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/muster-agent/muster/registry"
)

// address is where a registry listens.
type address struct {
	scheme  string // http, https
	host    string // HOST:PORT; a placeholder for a socket
	network string // tcp, unix
	dial    string // what is dialled
}

// CheckAddress tells of an address that Open would not take.
func CheckAddress(s string) error {
	_, err := parseAddress(s)
	return err
}

// parseAddress reads `consul://HOST:PORT`, `consul+tls://HOST:PORT` and `unix:PATH`.
func parseAddress(s string) (address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" {
			return address{}, fmt.Errorf("registry %q: want unix:PATH", s)
		}
		return address{scheme: "http", host: "localhost", network: "unix", dial: path}, nil
	}
	a := address{scheme: "http", network: "tcp"}
	host, ok := strings.CutPrefix(s, "consul://")
	if !ok {
		if host, ok = strings.CutPrefix(s, "consul+tls://"); !ok {
			return address{}, fmt.Errorf("registry %q: want consul://HOST:PORT, consul+tls://HOST:PORT or unix:PATH", s)
		}
		a.scheme = "https"
	}
	host = strings.TrimSuffix(host, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return address{}, fmt.Errorf("registry %q: want HOST:PORT: %w", s, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strings.ContainsAny(name, "/@ ") {
		return address{}, fmt.Errorf("registry %q: want HOST:PORT behind the scheme, PORT a number of 1-65535", s)
	}
	a.host, a.dial = host, host
	return a, nil
}

// lane is one connection to the registry; requests over it queue behind each other.
type lane struct {
	api     *api.Client
	http    *http.Client
	base    string // scheme://host
	token   string
	limited atomic.Int64 // connections that the server refused with 429 unasked
}

func newLane(a address, token string) (*lane, error) {
	l := &lane{base: a.scheme + "://" + a.host}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, a.network, a.dial)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: c, lane: l}, nil
		},
		MaxConnsPerHost:     1,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   false,
	}
	// CONSUL_* of TLS, namespace and token are read by DefaultNonPooledConfig; the address is ours.
	config := api.DefaultNonPooledConfig()
	client, err := api.NewHttpClient(transport, config.TLSConfig)
	if err != nil {
		return nil, fmt.Errorf("registry TLS: %w", err)
	}
	config.Address, config.Scheme, config.HttpClient = a.host, a.scheme, client
	if token == "" {
		token, err = tokenOf(config)
		if err != nil {
			return nil, err
		}
	}
	config.Token, config.TokenFile = token, ""
	l.http, l.token = client, token
	if l.api, err = api.NewClient(config); err != nil {
		return nil, fmt.Errorf("registry %s: %w", a.dial, err)
	}
	return l, nil
}

// tokenOf prefers the file, as Consul's own tools do.
func tokenOf(config *api.Config) (string, error) {
	if config.TokenFile == "" {
		return config.Token, nil
	}
	b, err := os.ReadFile(config.TokenFile)
	if err != nil {
		return "", fmt.Errorf("registry token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func (l *lane) close() { l.http.CloseIdleConnections() }

// watchedConn notices the answer 429 that Consul gives to a connection beyond its limit before any
// request was read. net/http reports such a connection as broken, and loses the reason.
type watchedConn struct {
	net.Conn
	lane  *lane
	read  atomic.Bool // something was read
	wrote atomic.Bool // something was written
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
	return 0, registry.ErrTooManyConnections // an answer to nothing, which net/http would only complain of
}

// Close looks for the answer that nobody has read because writing failed first.
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
	c.lane.limited.Add(1)
	return true
}
