package sandbox

import (
	"fmt"
	"log/slog"
)

// eventQueue keeps the events that the reader of Events has not taken yet, so that a slow one never holds up a Start.
type eventQueue struct {
	in     chan Event    // closed after the last event
	out    chan Event    // closed by run
	closed chan struct{} // closed when events that nobody reads may be dropped
	logger *slog.Logger
}

func newEventQueue(logger *slog.Logger) *eventQueue {
	return &eventQueue{in: make(chan Event), out: make(chan Event, 64), closed: make(chan struct{}), logger: logger}
}

// run passes events on until the last one is taken, or may be dropped.
func (q *eventQueue) run() {
	defer close(q.out)
	var queue []Event
	in, closed := q.in, q.closed
	for in != nil || len(queue) > 0 {
		if in == nil && closed == nil {
			q.offer(queue)
			return
		}
		var out chan Event
		var first Event
		if len(queue) > 0 {
			out, first = q.out, queue[0]
		}
		select {
		case e, ok := <-in:
			if !ok {
				in = nil
				continue
			}
			queue = append(queue, e)
		case out <- first:
			queue = queue[1:]
		case <-closed:
			closed = nil
		}
	}
}

// offer leaves in the channel what fits; after Close nobody may be reading.
func (q *eventQueue) offer(queue []Event) {
	for _, e := range queue {
		select {
		case q.out <- e:
		default:
			q.logger.Warn("event not read before close", "event", fmt.Sprintf("%T", e))
			return
		}
	}
}
