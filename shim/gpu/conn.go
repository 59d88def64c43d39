package gpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// longestLine bounds what a helper may say at once: 16 GPUs with thousands of processes each.
const longestLine = 16 << 20

// conn is one helper process and what was asked of it.
type conn struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	stdout   io.ReadCloser
	stderr   tail
	patience time.Duration
	emit     func(Event)
	hello    *Hello
	replies  replies
	ended    chan struct{} // closed when it is gone, or given up
	// abandoned says that it did not die of SIGKILL in time: it hangs in the driver. Read after ended.
	abandoned bool

	writing sync.Mutex

	mu     sync.Mutex
	killed chan struct{} // closed when it was killed
	why    error         // why it was killed
	status error         // how it ended
}

// replies are those that are waited for.
type replies struct {
	mu    sync.Mutex
	last  int64
	asked map[int64]chan Reply
}

// expect numbers a request.
func (r *replies) expect() (int64, chan Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	reply := make(chan Reply, 1)
	r.asked[r.last] = reply
	return r.last, reply
}

func (r *replies) forget(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, id)
}

// deliver passes a reply to its request; a second one is dropped.
func (r *replies) deliver(reply Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if asked := r.asked[reply.ID]; asked != nil {
		asked <- reply
		delete(r.asked, reply.ID)
	}
}

// dial starts a helper. emit gets its events.
func dial(path string, patience time.Duration, emit func(Event)) (*conn, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: not installed beside muster", ErrNoHelper)
	}
	c := &conn{
		cmd: exec.Command(path), patience: patience, emit: emit, ended: make(chan struct{}),
		killed:  make(chan struct{}),
		replies: replies{asked: map[int64]chan Reply{}},
	}
	c.cmd.Stderr = &c.stderr
	c.cmd.WaitDelay = patience
	// A group of its own: Ctrl-C at the agent's terminal is for the agent. No session: the agent takes children in
	// foreign sessions for orphans of its guard and kills them.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	if c.stdout, err = c.cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), c.stdin.Close())
	}
	if err := c.cmd.Start(); err != nil {
		return nil, startError(path, err)
	}
	go c.live()
	return c, nil
}

func startError(path string, err error) error {
	var missing error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Also where the loader that it names is missing, as in a musl root.
		missing = fmt.Errorf("%w: start %s: %w (is it there, and is a C library?)", ErrNoHelper, path, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		missing = fmt.Errorf("%w: start %s: %w", ErrNoHelper, path, err)
	default:
		missing = fmt.Errorf("start %s: %w", path, err)
	}
	return missing
}

// ask sends a request and waits for its reply, for the end of the helper (ErrEnded, or why it was killed) or of ctx
// (its cause).
func (c *conn) ask(ctx context.Context, op Op) (Reply, error) {
	id, reply := c.replies.expect()
	defer c.replies.forget(id)
	line, err := json.Marshal(Request{ID: id, Op: op})
	if err != nil {
		return Reply{}, err
	}
	c.writing.Lock()
	_, _ = c.stdin.Write(append(line, '\n')) // of a helper that has ended; its last replies may still be on their way
	c.writing.Unlock()
	select {
	case r := <-reply:
		return answered(r)
	case <-c.ended:
	case <-ctx.Done():
		return Reply{}, context.Cause(ctx)
	}
	select {
	case r := <-reply: // its last words
		return answered(r)
	default:
		return Reply{}, c.fault()
	}
}

func answered(r Reply) (Reply, error) {
	if r.Error != nil {
		return Reply{}, r.Error
	}
	return r, nil
}

// live reads what the helper says until it ends, and sees to it that it does.
func (c *conn) live() {
	defer close(c.ended)
	if err := c.readAll(); err != nil {
		c.kill(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- c.cmd.Wait() }() // it ends with the helper, which the driver may hold for ever
	for range 2 {
		timer := time.NewTimer(c.patience)
		select {
		case err := <-waited:
			timer.Stop()
			c.mu.Lock()
			c.status = err
			c.mu.Unlock()
			return
		case <-timer.C:
			c.kill(errors.New("it closed its output and did not end"))
		}
	}
	c.abandoned = true
}

// readAll reads to the end. A killed helper in the hands of the driver may outlive it: its output is closed after the
// patience, so that the read ends.
func (c *conn) readAll() error {
	read := make(chan struct{})
	var closing sync.WaitGroup
	closing.Go(func() {
		select {
		case <-read:
			return
		case <-c.killed:
		}
		timer := time.NewTimer(c.patience)
		defer timer.Stop()
		select {
		case <-read:
		case <-timer.C:
			_ = c.stdout.Close()
		}
	})
	err := c.read()
	close(read)
	closing.Wait()
	return err
}

func (c *conn) read() error {
	lines := bufio.NewScanner(c.stdout)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var r Reply
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("%w: it answered %.60q: %w", ErrEnded, lines.Text(), err)
		}
		if r.Event != nil {
			c.emit(*r.Event)
			continue
		}
		c.replies.deliver(r)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%w: a line of more than %d bytes", ErrEnded, longestLine)
	}
	return nil // its end, or ours
}

// kill ends the helper; why is the error of its requests.
func (c *conn) kill(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.cmd.Process.Kill()
	if c.why == nil {
		c.why = why
	}
	select {
	case <-c.killed:
	default:
		close(c.killed)
	}
}

// doomed tells that the helper is gone or about to be: its successor must be waited for.
func (c *conn) doomed() bool {
	select {
	case <-c.ended:
		return true
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why != nil
}

// stop lets the helper end by itself, by the end of its stdin.
func (c *conn) stop() {
	c.mu.Lock()
	if c.why == nil {
		c.why = errClosed
	}
	c.mu.Unlock()
	c.writing.Lock()
	_ = c.stdin.Close()
	c.writing.Unlock()
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.kill(errClosed)
		_ = c.stdout.Close() // it was given its time
		<-c.ended
	}
}

// fault is why the helper is gone.
func (c *conn) fault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return c.why
	}
	status := "without a word"
	if c.status != nil {
		status = c.status.Error()
	}
	if words := c.stderr.last(); words != "" {
		status += ": " + words
	}
	return fmt.Errorf("%w: %s", ErrEnded, status)
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

// last is the last line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
