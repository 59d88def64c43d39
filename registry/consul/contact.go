package consul

import (
	"sync"
	"time"

	"github.com/muster-agent/muster/registry"
)

// source is one kind of repeated request to the registry.
type source int

const (
	renewing source = iota
	watching
	sources // their number
)

// contact tells the agent when the registry stops answering and when it answers again. Nothing stops because of it.
type contact struct {
	send func(registry.Event)

	mu       sync.Mutex
	last     [sources]time.Time // when the last answered request was sent
	failing  [sources]bool
	reported bool // Unreachable was sent
	refused  bool // the last one said that the registry refuses the token
}

func newContact(send func(registry.Event)) *contact {
	c := &contact{send: send}
	for i := range c.last {
		c.last[i] = time.Now()
	}
	return c
}

func (c *contact) answered(s source, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[s], c.failing[s] = sent, false
	for _, away := range c.failing {
		if away {
			return
		}
	}
	if c.reported {
		c.reported = false
		c.send(registry.Reachable{})
	}
}

func (c *contact) failed(s source, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing[s] = true
	refused := refusesToken(err)
	if c.reported && c.refused == refused {
		return
	}
	c.reported, c.refused = true, refused
	c.send(registry.Unreachable{Since: c.last[s], Err: err})
}
