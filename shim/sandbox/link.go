package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
)

// link is the agent's end of the socket to a guard, with the requests that the guard has not answered.
type link struct {
	conn *net.UnixConn

	mu       sync.Mutex
	over     bool // no further request is taken
	last     int64
	requests map[int64]request
}

// request is an order that the guard answers by Done.
type request struct {
	first  func(guard.Message) // called by the reader before any later message is read; may be nil
	answer chan guard.Message
}

// sendTimeout: a guard that does not read for this long is stopped or lost; the lifeline still works.
const sendTimeout = 10 * time.Second

func (l *link) send(m guard.Message, files ...*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if _, _, err := l.conn.WriteMsgUnix(m.Encode(), rights, nil); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("guard does not answer: %w", err)
		}
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

// receive waits for the guard's next message and the descriptor that came with it, nil when none did.
func (l *link) receive() (m guard.Message, file *os.File, err error) {
	buffer, rights := make([]byte, guard.MessageSize), make([]byte, unix.CmsgSpace(4))
	n, rightsSize, _, _, err := l.conn.ReadMsgUnix(buffer, rights)
	if err != nil || n == 0 {
		return m, nil, ErrGone
	}
	m, err = guard.Decode(buffer[:n])
	return m, received(rights[:rightsSize]), err
}

// received is the descriptor that came with a message, for Go's poller; nil when none did.
func received(rights []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil
	}
	_ = unix.SetNonblock(fds[0], true) // of a living descriptor: it cannot fail
	return os.NewFile(uintptr(fds[0]), "terminal")
}

// ask sends a request and waits for the guard's answer, or its end. first may be nil.
func (l *link) ask(m guard.Message, first func(guard.Message)) (guard.Message, error) {
	answer, err := l.request(m, first)
	if err != nil {
		return guard.Message{}, err
	}
	if m, ok := <-answer; ok {
		return m, nil
	}
	return guard.Message{}, ErrGone
}

// askUntil does the same until ctx ends; then the answer is dropped.
func (l *link) askUntil(ctx context.Context, m guard.Message) (guard.Message, error) {
	answer, err := l.request(m, nil)
	if err != nil {
		return guard.Message{}, err
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return guard.Message{}, ErrGone
		}
		return m, nil
	case <-ctx.Done():
		return guard.Message{}, context.Cause(ctx)
	}
}

// request sends a request with a number of its own. The channel gives the answer, or is closed when the guard has ended
// without one.
func (l *link) request(m guard.Message, first func(guard.Message)) (<-chan guard.Message, error) {
	r := request{first: first, answer: make(chan guard.Message, 1)}
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return nil, ErrGone
	}
	l.last++
	m.A = l.last
	l.requests[m.A] = r
	l.mu.Unlock()
	if err := l.send(m); err != nil {
		l.take(m.A)
		return nil, err
	}
	return r.answer, nil
}

func (l *link) take(number int64) (r request, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, known = l.requests[number]
	delete(l.requests, number)
	return r, known
}

// answered passes the guard's answer on.
func (l *link) answered(m guard.Message) {
	r, known := l.take(m.A)
	if !known {
		return
	}
	if r.first != nil {
		r.first(m)
	}
	r.answer <- m
}

// shut takes no further request.
func (l *link) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// end closes the socket of a guard that has ended.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, r := range l.requests {
		close(r.answer)
	}
	clear(l.requests)
	_ = l.conn.Close() // nobody is at its other end
}
