package hdfs

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"
)

// Times of connections.
const (
	dialTime = 20 * time.Second // limit of connecting; Hadoop's ipc.client.connect.timeout
	nameTime = 2 * time.Minute  // without a byte from a NameNode that was asked; its ipc.client.rpc-timeout.ms
	dataTime = time.Minute      // without a byte from a DataNode; its dfs.client.socket-timeout
	// nodeTime is added for each DataNode of a block that is written: the first one waits for the others, and reports
	// which one is silent.
	nodeTime = 5 * time.Second
)

// What is read at once from a connection, in bytes.
const (
	dataBuffer = 128 << 10
	ackBuffer  = 4 << 10
)

// conn is a connection that ends by itself when nothing comes. The library's own deadlines are not used: it does not
// set them while it greets a node.
type conn struct {
	net.Conn
	in      *bufio.Reader
	node    string
	address string
	idle    time.Duration
	wires   *wires
	requests
}

// Close ends the connection. Of one to a DataNode nothing is kept: a long file needs many.
func (c *conn) Close() error {
	if c.node == dataNode {
		c.wires.forget(c)
	}
	return c.Conn.Close()
}

// Read gives what has come. The library reads in small pieces: the system is asked for more than that at a time.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if c.node == nameNode {
		if wrong := c.incoming(p[:n]); wrong != nil {
			return 0, &nodeError{c.node, c.address, errors.Join(wrong, c.Conn.Close())}
		}
	}
	if err != nil {
		if c.node == nameNode { // an answer that is late would be taken for another's
			_ = c.Conn.Close()
		}
		err = &nodeError{c.node, c.address, err}
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	out := p
	if c.node == nameNode {
		var err error
		if out, err = c.outgoing(p); err != nil {
			return 0, &nodeError{c.node, c.address, err}
		}
	}
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, &nodeError{c.node, c.address, err}
	}
	n, err := c.Conn.Write(out)
	if err != nil {
		return min(n, len(p)), &nodeError{c.node, c.address, err}
	}
	return len(p), nil
}

// SetDeadline is the library's wish; see conn.
func (c *conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline is as SetDeadline.
func (c *conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is as SetDeadline.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// raw is a connection whose reads have a time each.
type raw struct {
	net.Conn
	idle time.Duration
}

func (r raw) Read(p []byte) (int, error) {
	if err := r.Conn.SetReadDeadline(time.Now().Add(r.idle)); err != nil {
		return 0, err
	}
	return r.Conn.Read(p)
}

// wires are the connections of one client, which are cut together.
type wires struct {
	ctx       context.Context // ends when they are cut
	cut       context.CancelFunc
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	bad       *excluded
	questions *questions
	// accepted are the qualities of protection that will do for data; none: there is none.
	accepted []string
	// least is the quality that must be for questions; see seal.
	least string
	// session is the key that is shared with the NameNode at an address; nil: there is no Kerberos.
	session func(address string) (types.EncryptionKey, error)
	// token is shown to NameNodes in place of a ticket; nil: there is none.
	token *shownToken
	// noToken is why there is none although there is a token file.
	noToken string

	mu   sync.Mutex
	name []*conn
	data []*conn
}

func newWires(
	ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), bad *excluded,
) *wires {
	w := &wires{dial: dial, bad: bad, questions: &questions{}}
	if w.dial == nil {
		w.dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	// Connections outlive the call that opened them: cut ends them.
	w.ctx, w.cut = context.WithCancel(context.WithoutCancel(ctx))
	return w
}

func (w *wires) open(network, address, node string, idle time.Duration, buffer int) (*conn, error) {
	ctx, cancel := context.WithTimeout(w.ctx, dialTime)
	defer cancel()
	c, err := w.dial(ctx, network, address)
	if err != nil {
		return nil, &nodeError{node, address, err}
	}
	made := &conn{
		Conn:     c,
		in:       bufio.NewReaderSize(raw{c, idle}, buffer),
		node:     node,
		address:  address,
		idle:     idle,
		wires:    w,
		requests: requests{questions: w.questions},
	}
	if node == nameNode && w.token != nil {
		made.Conn = &greeting{Conn: c, shown: w.token, least: w.least, idle: idle, refuse: made.refuse}
		made.in = bufio.NewReaderSize(raw{made.Conn, idle}, buffer)
	}
	if node == nameNode && w.session != nil {
		made.seal = &seal{least: w.least, key: func() (types.EncryptionKey, error) { return w.session(address) }}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil { // cut meanwhile
		_ = c.Close()
		return nil, &nodeError{node, address, net.ErrClosed}
	}
	if node == nameNode {
		w.name = append(w.name, made)
	} else {
		w.data = append(w.data, made)
	}
	return made, nil
}

func (w *wires) openName(_ context.Context, network, address string) (net.Conn, error) {
	c, err := w.open(network, address, nameNode, nameTime, nameBuffer)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (w *wires) openData(_ context.Context, network, address string) (net.Conn, error) {
	key := w.questions.clusterKey()
	c, err := w.toData(network, address, dataTime, dataBuffer, key)
	if p, ok := c.(*protected); ok && key != nil {
		return &relay{protected: *p}, nil
	}
	return c, err
}

// toData connects to a DataNode, with a limit of silence and a size of the read buffer; key is the cluster's, if it
// encrypts all data.
func (w *wires) toData(network, address string, idle time.Duration, buffer int, key []field) (net.Conn, error) {
	c, err := w.open(network, address, dataNode, idle, buffer)
	if err != nil {
		return nil, err
	}
	w.bad.reached(address)
	if key != nil {
		return &protected{conn: c, accepted: []string{"auth-conf"}, key: key}, nil
	}
	if len(w.accepted) > 0 && !privileged(address) {
		return &protected{conn: c, accepted: w.accepted}, nil
	}
	return c, nil
}

// closeData ends what a file has used. The library leaves a part of them open.
func (w *wires) closeData() {
	w.mu.Lock()
	all := w.data
	w.data = nil
	w.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // closed twice at worst
	}
}

func (w *wires) forget(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := slices.Index(w.data, c); at >= 0 {
		w.data = slices.Delete(w.data, at, at+1)
	}
}

// said is the last refusal of a NameNode; refusals on other connections before it explain nothing later.
func (w *wires) said() refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := refusal{}
	for _, c := range w.name {
		if said := c.said(); said != (refusal{}) {
			last = said
		}
	}
	return last
}

// close cuts all connections, also for those who wait for one.
func (w *wires) close() {
	w.cut()
	w.closeData()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.name {
		_ = c.Close()
	}
	w.name = nil
}
