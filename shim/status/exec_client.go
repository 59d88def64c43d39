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

// Exec runs a program beside the agent's app and returns how it ended. When ctx ends first the program gets a hangup.
// A read of Stdin that is under way at the program's end cannot be interrupted: its goroutine ends with that read.
func (c *Client) Exec(ctx context.Context, ask ExecRequest, s ExecStreams) (ExecExit, error) {
	return c.execAt(ctx, "/v1/exec", ask, s)
}

// execAt is Exec by another path of the API.
func (c *Client) execAt(ctx context.Context, path string, ask ExecRequest, s ExecStreams) (ExecExit, error) {
	conn, err := c.upgrade(ctx, path, ask)
	if err != nil {
		return ExecExit{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // the agent hangs up on the program
	x := caller{stream: &stream{conn: conn}, to: s, ask: ask, credit: newCredit(execWindow)}
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
	_ = conn.Close() // the exchange is over
	return exit, nil
}

// upgrade starts the program; the connection that it returns carries frames.
func (c *Client) upgrade(ctx context.Context, path string, ask ExecRequest) (io.ReadWriteCloser, error) {
	text, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c.identify(req)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", execProtocol)
	r, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("agent at %s: %w", c.path, err)
	}
	if r.StatusCode != http.StatusSwitchingProtocols {
		return nil, c.failure(r)
	}
	conn, ok := r.Body.(io.ReadWriteCloser)
	if got := r.Header.Get("Upgrade"); !ok || got != execProtocol {
		err := fmt.Errorf("agent at %s: speaks %q, want %s", c.path, got, execProtocol)
		return nil, errors.Join(err, r.Body.Close())
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

// receive takes frames until the program's end.
func (x *caller) receive() (ExecExit, error) {
	from := bufio.NewReader(x.conn)
	for {
		f, err := readFrame(from)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return ExecExit{}, fmt.Errorf("the connection is lost: %w", err)
		}
		switch f.Type {
		case frameStdout:
			_, err = x.to.Stdout.Write(f.Data)
		case frameStderr:
			_, err = x.to.Stderr.Write(f.Data)
		case frameTaken:
			err = x.refill(f.Data)
		case frameExit:
			var exit ExecExit
			err = json.Unmarshal(f.Data, &exit)
			return exit, err
		case frameStdin, frameStdinEnd, frameResize, frameSignal: // a caller's
			err = fmt.Errorf("%w: type %d", errFrame, f.Type)
		}
		if err != nil {
			return ExecExit{}, err
		}
	}
}

func (x *caller) refill(data []byte) error {
	if len(data) != 4 {
		return fmt.Errorf("%w: taken of %d bytes", errFrame, len(data))
	}
	x.credit.add(int(binary.BigEndian.Uint32(data)))
	return nil
}

// order sends new sizes and signals.
func (x *caller) order(ctx context.Context) {
	for {
		var err error
		select {
		case z := <-x.to.Resize:
			size := binary.BigEndian.AppendUint16(nil, z.Rows)
			err = x.write(frameResize, binary.BigEndian.AppendUint16(size, z.Columns))
		case n := <-x.to.Signals:
			err = x.write(frameSignal, []byte{byte(n)})
		case <-ctx.Done():
			return
		}
		if err != nil {
			return // receive returns the error
		}
	}
}

// send sends the input, at most execWindow bytes ahead of the program.
func (x *caller) send() {
	b := make([]byte, 32<<10)
	for {
		n, err := x.to.Stdin.Read(b)
		for rest := b[:n]; len(rest) > 0; {
			part := rest[:x.credit.take(len(rest))]
			if len(part) == 0 || x.write(frameStdin, part) != nil {
				return // receive returns the error
			}
			rest = rest[len(part):]
		}
		if err != nil { // the input has ended
			_ = x.write(frameStdinEnd, nil) // receive returns the error
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

// take waits until some of n bytes may be sent and returns how many; 0: none any more.
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
