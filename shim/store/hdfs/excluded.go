package hdfs

import (
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Times of DataNodes that are left out.
const (
	leftOut   = 10 * time.Minute // a NameNode holds a lost one for dead after ten and a half
	mostNodes = 10_000           // that are remembered
)

// excluded are the DataNodes of a cluster that were unreachable or accepted nothing: a NameNode takes minutes to notice
// a lost node, and does not notice one that hangs or whose disk is full.
type excluded struct {
	mu    sync.Mutex
	known map[string][]byte // by address: the DataNode as the NameNode writes it
	out   map[string]exclusion
}

// exclusion is why a DataNode is left out, and how long. A connection mends that it was not reached; that it takes
// nothing, it does not: a full one takes connections, and a stopped one's system does.
type exclusion struct {
	until   time.Time
	refused bool
}

func newExcluded() *excluded {
	return &excluded{known: map[string][]byte{}, out: map[string]exclusion{}}
}

func (e *excluded) met(addresses [2]string, node []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range addresses {
		if len(e.known) < mostNodes || e.known[a] != nil {
			e.known[a] = slices.Clone(node)
		}
	}
}

// lost leaves a DataNode out for a while that was not reached.
func (e *excluded) lost(address string) { e.leave(address, false) }

// refused excludes a DataNode for a while that was reached and failed.
func (e *excluded) refused(address string) { e.leave(address, true) }

func (e *excluded) leave(address string, refused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out[address] = exclusion{time.Now().Add(leftOut), refused || e.out[address].refused}
}

// reached takes a DataNode back that was not there.
func (e *excluded) reached(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.out[address].refused {
		delete(e.out, address)
	}
}

// forget takes all back, and tells whether there were any.
func (e *excluded) forget() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	had := len(e.out) > 0
	clear(e.out)
	return had
}

// nodes are the excluded DataNodes.
func (e *excluded) nodes() [][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all [][]byte
	for address, one := range e.out {
		if time.Now().After(one.until) {
			delete(e.out, address)
		} else if node := e.known[address]; node != nil {
			all = append(all, node)
		}
	}
	return all
}

// addressOf is that of a DataNode, by its IP address and by its name.
func addressOf(node []byte) [2]string {
	id := fields(data(fields(node), 1))
	port := strconv.FormatUint(number(id, 4), 10)
	return [2]string{net.JoinHostPort(string(data(id, 1)), port), net.JoinHostPort(string(data(id, 2)), port)}
}
