package status

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// How long a connection of another host may take. It is known once it has shown the run's token.
const (
	strangerPatience = 10 * time.Second // for the handshake, the request and its answer
	knownPatience    = 2 * time.Minute  // for a request and its answer, a roster over a slow network among them
	idlePatience     = 30 * time.Second // between two requests
	mostHeader       = 8 << 10          // bytes
	mostBody         = 1 << 16
)

// mostConnections bounds the connections of other hosts. It leaves half of the descriptors to the agent itself: its
// socket answers whatever happens at the port.
const mostConnections = 4096

// ServePeers answers agents of other hosts until ctx is done, by TLS alone.
func ServePeers(ctx context.Context, l net.Listener, id PeerIdentity, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: strangerPatience, ReadTimeout: strangerPatience, WriteTimeout: strangerPatience,
		IdleTimeout: idlePatience, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if over, ok := c.(*tls.Conn); ok {
				return context.WithValue(ctx, connectionKey{}, over.NetConn())
			}
			return ctx
		},
	}
	return serveWith(ctx, server, tls.NewListener(newConnections(l, budget(mostConnections, 2)), id.server()))
}

// budget is how many of most connections this process may have: they take one descriptor of so many at most.
func budget(most int, of uint64) int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return max(1, most/8)
	}
	return int(min(uint64(most), limit.Cur/of)) //nolint:gosec // at most most, which is positive
}

// Bounded bounds the connections of a port that others find, to most or fewer: they must leave the process its
// descriptors. The server tells of the connections that it knows, by Known.
func Bounded(l net.Listener, most int) net.Listener { return newConnections(l, budget(most, 4)) }

// connections are those of other hosts, or of the users of this one. Those that have not shown the run's token yet are
// strangers: when there are too many, of one address or in all, the oldest of the address with the most strangers is
// closed. So a crowd of idle connections closes each other, and a peer that shows its token at once gets through.
type connections struct {
	net.Listener
	most                    int // in all
	strangersAll, strangers int // strangers in all, and of one address

	mu     sync.Mutex
	open   int
	oldest []*connection // strangers, oldest first
	by     map[string]int
}

func newConnections(l net.Listener, most int) *connections {
	return &connections{
		Listener: l, most: most, strangersAll: max(1, most/2), strangers: max(1, most/4), by: map[string]int{},
	}
}

// connection is one of these connections.
type connection struct {
	net.Conn
	of      *connections
	address string
	once    sync.Once
}

type connectionKey struct{}

// Accept returns the next connection that there is room for.
func (g *connections) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if one := g.take(c); one != nil {
			return one, nil
		}
		_ = c.Close() // nothing was said
	}
}

// take makes room for a connection by closing a stranger; nil: there is none to close.
func (g *connections) take(c net.Conn) *connection {
	address := from(c)
	g.mu.Lock()
	var closed *connection
	switch {
	case g.by[address] >= g.strangers:
		closed = g.drop(address)
	case len(g.oldest) >= g.strangersAll, g.open >= g.most:
		closed = g.drop(g.crowd())
	}
	if g.open >= g.most {
		g.mu.Unlock()
		return nil
	}
	one := &connection{Conn: c, of: g, address: address}
	g.open++
	g.oldest, g.by[address] = append(g.oldest, one), g.by[address]+1
	g.mu.Unlock()
	if closed != nil {
		_ = closed.Conn.Close() // it is out of the books already
	}
	return one
}

// from is the address of the other end; at a socket the user there.
func from(c net.Conn) string {
	if uid, err := peerUID(c); err == nil {
		return strconv.Itoa(uid)
	}
	address, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return address
}

// crowd is the address with the most strangers; of equals, that of the oldest. It is called with the mutex held.
func (g *connections) crowd() string {
	most, address := 0, ""
	for _, one := range g.oldest {
		if n := g.by[one.address]; n > most {
			most, address = n, one.address
		}
	}
	return address
}

// drop takes the oldest stranger of an address out of the books, with the mutex held; nil: it has none.
func (g *connections) drop(address string) *connection {
	for _, one := range g.oldest {
		if one.address == address {
			g.noStranger(one)
			one.once.Do(func() { g.open-- })
			return one
		}
	}
	return nil
}

// noStranger is called with the mutex held.
func (g *connections) noStranger(one *connection) {
	for i, other := range g.oldest {
		if other == one {
			g.oldest = append(g.oldest[:i], g.oldest[i+1:]...)
			if g.by[one.address]--; g.by[one.address] == 0 {
				delete(g.by, one.address)
			}
			return
		}
	}
}

// Close ends the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	c.of.noStranger(c)
	c.once.Do(func() { c.of.open-- })
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Known notes that the connection has shown what its server wants: it is closed for nobody.
func (c *connection) Known() {
	c.of.mu.Lock()
	c.of.noStranger(c)
	c.of.mu.Unlock()
}

// welcome notes that a request's connection has shown the run's token: from here on it has longer, and is closed for
// nobody.
func welcome(w http.ResponseWriter, r *http.Request) {
	one, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	one.Known()
	control, end := http.NewResponseController(w), time.Now().Add(knownPatience)
	_, _ = control.SetReadDeadline(end), control.SetWriteDeadline(end) // fail when the connection is closed
}
