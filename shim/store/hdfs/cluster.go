package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	client "github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/muster-agent/muster/shim/store"
)

// How many connections to NameNodes a process has for one cluster and user, and how long.
const (
	mostFiles = 64               // open at a time
	mostCalls = 8                // other questions at a time
	idleTime  = 10 * time.Second // an unused one is kept
	oldest    = time.Hour        // any is used: keys that it has been given end
)

// cluster is one cluster as one user. All stores of a process share it.
type cluster struct {
	name      string // as the URL has it
	conf      Conf
	addresses []string
	who       identity
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	ticket    *ticket // nil: no Kerberos
	bad       *excluded

	files, calls chan struct{}

	mu       sync.Mutex
	idle     []*link // the last one used at the end
	watching bool
	defaults client.ServerDefaults
}

var clusters struct {
	sync.Mutex
	by map[string]*cluster
}

func clusterOf(c Config, conf Conf, name string, addresses []string, who identity) *cluster {
	key := fmt.Sprintf("%q %q %q %q", c.dir(), name, addresses, who)
	clusters.Lock()
	defer clusters.Unlock()
	if known, ok := clusters.by[key]; ok && c.Dial == nil && maps.Equal(known.conf, conf) {
		return known
	}
	made := &cluster{
		name: name, conf: conf, addresses: addresses, who: who, dial: c.Dial, bad: newExcluded(),
		files: make(chan struct{}, mostFiles), calls: make(chan struct{}, mostCalls),
	}
	if conf.Secure() {
		made.ticket = &ticket{keytab: who.keytab, principal: who.principal, cache: who.cache}
	}
	if c.Dial != nil { // its connections are not shared
		return made
	}
	if clusters.by == nil {
		clusters.by = map[string]*cluster{}
	}
	clusters.by[key] = made
	return made
}

// url is a path as people read it.
func (c *cluster) url(path string) string { return Scheme + "://" + c.name + path }

// link is a client of the library that one goroutine at a time uses.
type link struct {
	*client.Client
	wires  *wires
	born   time.Time
	used   time.Time
	broken bool
}

// take gives a connection for one user alone; it is cut when ctx ends. place is the count that it belongs to; nil:
// none.
func (c *cluster) take(ctx context.Context, place chan struct{}) (*link, error) {
	if place != nil {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if l := c.pop(); l != nil {
		return l, nil
	}
	l, err := c.connect(ctx)
	if err != nil {
		leave(place)
		return nil, err
	}
	return l, nil
}

func leave(place chan struct{}) {
	if place != nil {
		<-place
	}
}

func (c *cluster) pop() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == 0 {
		return nil
	}
	l := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	return l
}

// give takes a connection back.
func (c *cluster) give(l *link, place chan struct{}) {
	defer leave(place)
	l.wires.closeData()
	if l.broken || l.wires.ctx.Err() != nil || time.Since(l.born) > oldest {
		l.close()
		return
	}
	l.used = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, l)
	if !c.watching {
		c.watching = true
		go c.watch()
	}
}

// watch closes what has not been used for a while, and ends when nothing is left.
func (c *cluster) watch() {
	ticker := time.NewTicker(idleTime / 2)
	defer ticker.Stop()
	for range ticker.C {
		c.mu.Lock()
		old := slices.IndexFunc(c.idle, func(l *link) bool { return time.Since(l.used) < idleTime })
		if old < 0 {
			old = len(c.idle)
		}
		over := slices.Clone(c.idle[:old])
		c.idle = slices.Delete(c.idle, 0, old)
		ended := len(c.idle) == 0
		c.watching = !ended
		c.mu.Unlock()
		for _, l := range over {
			l.close()
		}
		if ended {
			return
		}
	}
}

// drop closes the unused connections: if one was lost, the others are, too.
func (c *cluster) drop() {
	c.mu.Lock()
	over := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, l := range over {
		l.close()
	}
}

// close ends a connection. What the library still does with it ends with that.
func (l *link) close() {
	l.wires.close()
	_ = l.Close() // it has been cut
}

// connect makes a new connection, to the first NameNode that answers.
func (c *cluster) connect(ctx context.Context) (_ *link, err error) {
	w := newWires(ctx, c.dial, c.bad)
	stop := context.AfterFunc(ctx, w.close)
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			w.close()
		}
	}()
	o, err := c.options(ctx, w)
	if err != nil {
		return nil, err
	}
	made, err := client.NewClient(o)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, meaning(err, w.said())
	}
	now := time.Now()
	return &link{Client: made, wires: w, born: now, used: now}, nil
}

func (c *cluster) options(ctx context.Context, w *wires) (client.ClientOptions, error) {
	o := client.ClientOptionsFromConf(hadoopconf.HadoopConf(c.conf.filled()))
	o.Addresses, o.User = slices.Clone(c.addresses), c.who.user
	o.NamenodeDialFunc, o.DatanodeDialFunc = w.openName, w.openData
	o.KerberosClient = nil
	c.protect(&o, w)
	if c.ticket == nil {
		return o, nil
	}
	if c.who.tokens != "" {
		owner, ok, err := c.byToken(w)
		if o.User = owner; err != nil || ok {
			return o, err
		}
	}
	principal := c.conf.get("dfs.namenode.kerberos.principal." + c.name)
	if principal == "" {
		principal = c.conf.get("dfs.namenode.kerberos.principal")
	}
	if principal == "" {
		return o, refused(
			"write the NameNode's principal there, such as nn/_HOST@REALM",
			"got no dfs.namenode.kerberos.principal in Hadoop's configuration",
		)
	}
	o.KerberosServicePrincipleName, _, _ = strings.Cut(principal, "@")
	var err error
	if o.KerberosClient, err = c.ticket.get(); err != nil {
		return o, besideTokens(err, w.noToken)
	}
	tickets := o.KerberosClient
	w.session = func(address string) (types.EncryptionKey, error) {
		_, key, err := tickets.GetServiceTicket(servicePrincipal(principal, address)) // the ticket that was just used
		return key, err
	}
	if err := serviceTicket(ctx, o.KerberosClient, principal, c.addresses); err != nil {
		if ctx.Err() != nil {
			return o, err
		}
		return o, explainKerberos(err, c.who.keytab, c.who.principal)
	}
	return o, nil
}

// byToken is that the cluster is asked by a token, as its owner; false: there is none for it.
func (c *cluster) byToken(w *wires) (owner string, ok bool, err error) {
	found, services, err := c.tokenOf()
	if err != nil {
		return "", false, err
	}
	if found == nil {
		w.noToken = fmt.Sprintf("token file %s: got tokens for %q, none for %s", c.who.tokens, services, c.name)
		return "", false, nil
	}
	owner, end, err := found.holder()
	if err != nil {
		return "", false, refused(newToken, "token file %s: the token for %s: %v", c.who.tokens, c.name, err)
	}
	if time.Now().After(end) {
		return "", false, refused(
			newToken, "token file %s: the delegation token of %s ended at %s", c.who.tokens, owner,
			end.UTC().Format(time.RFC3339),
		)
	}
	w.token = &shownToken{token: *found, from: fmt.Sprintf("delegation token of %s in %s", owner, c.who.tokens)}
	return owner, true, nil
}

// tokenOf is the file's token for a cluster; none: there is none for it, and services are those that there are.
func (c *cluster) tokenOf() (found *token, services []string, err error) {
	_, all, err := readTokens(c.who.tokens)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range all {
		if one.fits(c.name, c.addresses, net.LookupHost) {
			return &one, nil, nil
		}
		services = append(services, strings.TrimSpace(one.kind+" "+one.service))
	}
	return nil, services, nil
}

// protect is how data is protected on its way. The cluster decides about keys of the whole cluster
// (dfs.encrypt.data.transfer).
func (c *cluster) protect(o *client.ClientOptions, w *wires) {
	o.DataTransferProtection = "" // see protected
	w.least = c.conf.leastProtection()
	if strings.EqualFold(c.conf.get("dfs.encrypt.data.transfer"), "true") {
		w.accepted = []string{qualities["privacy"]}
		return
	}
	for _, one := range c.conf.list("dfs.data.transfer.protection") {
		if quality := qualities[strings.ToLower(one)]; quality != "" {
			w.accepted = append(w.accepted, quality)
		}
	}
}

// forms are the block size in bytes and the number of copies of new files: the configuration's, else the cluster's.
func (c *cluster) forms(l *link) (block int64, copies int, err error) {
	known, err := c.standards(l)
	if block = c.conf.blockSize(); block == 0 {
		block = known.BlockSize
	}
	if copies = c.conf.replication(); copies == 0 {
		copies = known.Replication
	}
	return block, copies, err
}

// standards are the cluster's defaults.
func (c *cluster) standards(l *link) (client.ServerDefaults, error) {
	c.mu.Lock()
	known := c.defaults
	c.mu.Unlock()
	if known.BlockSize > 0 {
		return known, nil
	}
	known, err := l.ServerDefaults()
	if err == nil {
		c.mu.Lock()
		c.defaults = known
		c.mu.Unlock()
	}
	return known, err
}

// naming is which of a DataNode's addresses is used: 0 for that by number, 1 for that by name.
func (c *cluster) naming() int {
	if strings.EqualFold(c.conf.get("dfs.client.use.datanode.hostname"), "true") {
		return 1
	}
	return 0
}

// probe looks which of a block's DataNodes can be reached; the others get no block of ours for a while.
func (c *cluster) probe(ctx context.Context, nodes [][]byte) {
	const most = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	dial := c.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	var all sync.WaitGroup
	for _, node := range nodes {
		all.Go(func() {
			address := addressOf(node)[c.naming()]
			conn, err := dial(ctx, "tcp", address)
			if err != nil {
				if !errors.Is(ctx.Err(), context.Canceled) {
					c.bad.lost(address)
				}
				return
			}
			c.bad.reached(address)
			_ = conn.Close() // nothing was sent
		})
	}
	all.Wait()
}

// transient tells whether a call may be made again.
func transient(err error) bool {
	if _, over := errors.AsType[anew](err); over {
		return false
	}
	if errors.Is(err, errNoNodes) { // others remove what they need no more, and DataNodes come back
		return !errors.Is(err, store.ErrWaited)
	}
	return errors.Is(err, store.ErrUnreachable) && !errors.Is(err, ErrKerberos) && store.Transient(err)
}

// ask asks the active NameNode.
func (l *link) ask(method string, message []byte) ([]byte, error) {
	all := l.wires.questions
	all.turn.Lock()
	defer all.turn.Unlock()
	q := &question{method: method, message: message}
	all.set(q)
	err := l.Client.Chmod(inPlace, 0)
	all.set(nil)
	if pathError, ok := errors.AsType[*fs.PathError](err); ok { // of an unknown path
		err = pathError.Err
	}
	if err != nil {
		return nil, err
	}
	if !q.answered {
		return nil, errors.New("the NameNode's answer cannot be read")
	}
	return q.answer, nil
}
