package login

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// tellRefused is how often refused logins are told of, together.
const tellRefused = time.Minute

// refusals counts the logins that were refused.
type refusals struct {
	tell func(text string)

	mu   sync.Mutex
	n    int // since they were told of
	last string
	told time.Time
}

// add counts one, and tells of all that came since the last time if that is a while ago.
func (r *refusals) add(from net.Addr, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	r.last = fmt.Sprintf("%s from %s", key, hostOf(from))
	if time.Since(r.told) >= tellRefused {
		r.flushLocked()
	}
}

// flush tells of those that nobody was told of.
func (r *refusals) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushLocked()
}

func (r *refusals) flushLocked() {
	if r.n > 0 {
		r.tell(fmt.Sprintf("refused %s, the last by %s", counted(r.n), r.last))
	}
	r.n, r.told = 0, time.Now()
}

func counted(n int) string {
	if n == 1 {
		return "a login"
	}
	return strconv.Itoa(n) + " logins"
}
