package consul

import (
	"sync"

	"github.com/muster-agent/muster/registry"
)

// mailbox delivers events to the agent one at a time and in order, and never delays the sender. The receiver may call
// the membership's methods, except Close and Leave.
type mailbox struct {
	notify func(registry.Event)

	mu         sync.Mutex
	queue      []registry.Event
	closed     bool
	bell       chan struct{} // rings when an event is queued, or at close
	deliveries sync.WaitGroup
}

func newMailbox(notify func(registry.Event)) *mailbox {
	m := &mailbox{notify: notify, bell: make(chan struct{}, 1)}
	m.deliveries.Go(m.deliver)
	return m
}

func (m *mailbox) send(e registry.Event) {
	m.mu.Lock()
	if !m.closed {
		m.queue = append(m.queue, e)
	}
	m.mu.Unlock()
	m.ring()
}

// close delivers nothing more, and waits for a running delivery: the receiver must not call close.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed, m.queue = true, nil
	m.mu.Unlock()
	m.ring()
	m.deliveries.Wait()
}

func (m *mailbox) ring() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

func (m *mailbox) deliver() {
	for range m.bell {
		for {
			e, more, closed := m.next()
			if closed {
				return
			}
			if !more {
				break
			}
			m.notify(e)
		}
	}
}

func (m *mailbox) next() (e registry.Event, more, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, false, true
	}
	if len(m.queue) == 0 {
		return nil, false, false
	}
	e = m.queue[0]
	m.queue = m.queue[1:]
	return e, true, false
}
