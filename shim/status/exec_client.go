package status

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// ExecStreams are the caller's ends of a program's streams.
type ExecStreams struct {
	Stdin          io.Reader // read only when the request says Stdin
	Stdout, Stderr io.Writer
	Resize         <-chan ExecSize
	Signals        <-chan int
}

// Exec runs a program beside the agent's app and returns how it ended. When ctx ends first the program is hung up
// on. A read of Stdin that is under way at the program's end is left to itself.
func (c *Client) Exec(ctx context.Context, ask ExecRequest, s ExecStreams) (ExecExit, error) {
	return c.execAt(ctx, "/v1/exec", ask, s)
}

// execAt is an exec by that path.
func (c *Client) execAt(ctx context.Context, path string, ask ExecRequest, s ExecStreams) (ExecExit, error) {
	conn, err := c.upgrade(ctx, path, ask)
	if err != nil {
		return ExecExit{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the agent hangs up on the program
	x := caller{stream: &stream{conn: conn}, to: s, ask: ask, credit: newCredit(ExecWindow)}
	defer x.credit.end()
	var orders sync.WaitGroup
	orders.Go(func() { x.order(ctx) })
	if ask.Stdin {
		go x.send()
	}
	exit, err := x.receive()
	early := !stop() // before cancel
	cancel()
	orders.Wait()
	switch {
	case early && err != nil:
		return ExecExit{}, context.Cause(ctx)
	case err != nil:
		return ExecExit{}, fmt.Errorf("agent at %s: %w", c.path, errors.Join(err, conn.Close()))
	}
	_ = conn.Close() // all is said
	return exit, nil
}

// upgrade asks for the program; its answer is a stream of frames.
func (c *Client) upgrade(ctx context.Context, path string, ask ExecRequest) (io.ReadWriteCloser, error) {
	text, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c.identify(req)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", ExecProtocol)
	r, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("agent at %s: %w", c.path, err)
	}
	if r.StatusCode != http.StatusSwitchingProtocols {
		return nil, c.failure(r)
	}
	conn, ok := r.Body.(io.ReadWriteCloser)
	if got := r.Header.Get("Upgrade"); !ok || got != ExecProtocol {
		return nil, errors.Join(fmt.Errorf("agent at %s: speaks %q, want %s", c.path, got, ExecProtocol), r.Body.Close())
	}
	return conn, nil
}

// caller is one exec as its client sees it.
type caller struct {
	*stream
	to     ExecStreams
	ask    ExecRequest
	credit *credit
}

// receive takes what comes until the program's end.
func (x *caller) receive() (ExecExit, error) {
	from := bufio.NewReader(x.conn)
	for {
		f, err := ReadFrame(from)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return ExecExit{}, fmt.Errorf("the connection is lost: %w", err)
		}
		switch f.Type {
		case FrameStdout:
			_, err = x.to.Stdout.Write(f.Data)
		case FrameStderr:
			_, err = x.to.Stderr.Write(f.Data)
		case FrameTaken:
			err = x.refill(f.Data)
		case FrameExit:
			var exit ExecExit
			err = json.Unmarshal(f.Data, &exit)
			return exit, err
		case FrameStdin, FrameStdinEnd, FrameResize, FrameSignal: // ours to say
			err = fmt.Errorf("%w: type %d", ErrFrame, f.Type)
		}
		if err != nil {
			return ExecExit{}, err
		}
	}
}

func (x *caller) refill(data []byte) error {
	if len(data) != 4 {
		return fmt.Errorf("%w: taken of %d bytes", ErrFrame, len(data))
	}
	x.credit.add(int(binary.BigEndian.Uint32(data)))
	return nil
}

// order tells of new sizes and signals.
func (x *caller) order(ctx context.Context) {
	for {
		var err error
		select {
		case z := <-x.to.Resize:
			err = x.write(FrameResize, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, z.Rows), z.Columns))
		case n := <-x.to.Signals:
			err = x.write(FrameSignal, []byte{byte(n)})
		case <-ctx.Done():
			return
		}
		if err != nil {
			return // receive says so
		}
	}
}

// send passes the input on, no further ahead than the window.
func (x *caller) send() {
	b := make([]byte, 32<<10)
	for {
		n, err := x.to.Stdin.Read(b)
		for rest := b[:n]; len(rest) > 0; {
			part := rest[:x.credit.take(len(rest))]
			if len(part) == 0 || x.write(FrameStdin, part) != nil {
				return // receive says so
			}
			rest = rest[len(part):]
		}
		if err != nil { // of a read: there is no more
			_ = x.write(FrameStdinEnd, nil) // receive says so
			return
		}
	}
}

// credit counts bytes that may be sent.
type credit struct {
	mu      sync.Mutex
	changed *sync.Cond
	left    int
	ended   bool
}

func newCredit(n int) *credit {
	c := &credit{left: n}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// take waits until some of n may be sent and says how many; 0: nothing will ever be.
func (c *credit) take(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.left == 0 && !c.ended {
		c.changed.Wait()
	}
	if c.ended {
		return 0
	}
	n = min(n, c.left)
	c.left -= n
	return n
}

func (c *credit) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left += n
	c.changed.Signal()
}

func (c *credit) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.changed.Signal()
}
