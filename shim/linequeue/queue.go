package linequeue

import (
	"sync"
	"time"
)

// most is how many bytes may wait: some thousand lines.
const most = 256 << 10

// Queue is the lines that wait for one writer, in the order in which they were added. It is safe for concurrent use.
type Queue struct {
	write func(line []byte)
	lost  func(n int) []byte

	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	waiting [][]byte
	bytes   int // of waiting
	dropped int // since the last line that was taken
	closed  bool
	more    chan struct{} // holds one token while there is work
}

// New starts a queue whose goroutine calls write for one line after the other. lost makes the line that says how many
// were dropped before it. Close ends it.
func New(write func(line []byte), lost func(n int) []byte) *Queue {
	q := &Queue{write: write, lost: lost, done: make(chan struct{}), more: make(chan struct{}, 1)}
	go q.run()
	return q
}

// Add queues a copy of a line. It never blocks.
func (q *Queue) Add(line []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.bytes+len(line) > most {
		q.dropped++
		return
	}
	if q.dropped > 0 {
		q.append(q.lost(q.dropped))
		q.dropped = 0
	}
	q.append(append([]byte(nil), line...))
	q.wake()
}

func (q *Queue) append(line []byte) {
	q.waiting, q.bytes = append(q.waiting, line), q.bytes+len(line)
}

func (q *Queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// Close has everything written that was added, and waits for that at most so long. A writer that hangs in the kernel
// cannot be ended: it is left behind. Lines that are added later are dropped.
func (q *Queue) Close(patience time.Duration) {
	q.mu.Lock()
	if !q.closed {
		if q.closed = true; q.dropped > 0 {
			q.append(q.lost(q.dropped))
		}
		q.wake()
	}
	q.mu.Unlock()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-q.done:
	case <-limit.C:
	}
}

func (q *Queue) run() {
	defer close(q.done)
	for range q.more {
		for {
			line, ok, closed := q.next()
			if ok {
				q.write(line)
				continue
			}
			if closed {
				return
			}
			break
		}
	}
}

// next is the oldest line. It counts against the bound until it is taken.
func (q *Queue) next() (line []byte, ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.waiting = nil // free the memory of a burst
		return nil, false, q.closed
	}
	line, q.waiting = q.waiting[0], q.waiting[1:]
	q.bytes -= len(line)
	return line, true, q.closed
}
