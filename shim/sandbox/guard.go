package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// Guard is a parked or running guard. One agent has one at a time. Its methods may be called from any
// goroutine; its events must be read, or Close called, for its goroutines to end.
//
// When the guard itself dies, the agent, as the next subreaper, inherits its descendants. They are known
// by their session, which is never the agent's: nothing can enter a session from outside. So all of
// the agent's children in foreign sessions are killed then, and the rest of the agent must start its own
// helpers without setsid.
type Guard struct {
	options  Options
	process  child
	around   boundary
	ticks    uint64
	conn     *net.UnixConn
	lifeline *os.File
	events   chan Event
	inbox    chan Event    // reader → delivery
	hello    chan int64    // the guard's first word: the protocol's version
	ended    chan struct{} // closed when the guard and all that it left are gone
	stuck    chan struct{} // closed at the first Stuck after Close
	closed   chan struct{} // closed when Close returns: events nobody reads may be dropped
	patience time.Duration // of Close with a guard that says nothing

	closeOnce sync.Once
	closeErr  error

	mu      sync.Mutex
	state   state
	reply   chan error // of the Start under way
	attempt int
	pid     int // of the main process, 0 if none
	closing bool
	fired   bool                // dead-man
	left    []proc.StuckProcess // since Close, or after the guard's death

	sessions map[int64]*Session // of which the guard has not told the end
	lastExec int64

	requests    map[int64]request // that the guard has not answered
	lastRequest int64
}

type state int

const (
	idle state = iota
	starting
	running
	lingering // the starter has ended and left descendants
	emptying  // exited, not yet empty
	gone
)

func newGuard(o Options, p child, around boundary, conn *net.UnixConn, lifeline *os.File) *Guard {
	g := &Guard{
		options: o, process: p, around: around, conn: conn, lifeline: lifeline,
		events: make(chan Event, 64), inbox: make(chan Event),
		hello: make(chan int64, 1), ended: make(chan struct{}), stuck: make(chan struct{}), closed: make(chan struct{}),
		patience: closePatience, sessions: map[int64]*Session{}, requests: map[int64]request{},
	}
	if s, err := (proc.Host{}).Stat(p.PID()); err == nil {
		g.ticks = s.Start
	}
	living.add(g.id())
	go g.deliver()
	go g.read()
	return g
}

func (g *Guard) awaitHello(ctx context.Context) error {
	select {
	case version := <-g.hello:
		if version != guard.Version {
			return errors.Join(fmt.Errorf("it speaks protocol %d, want %d: run make build", version, guard.Version), g.Close())
		}
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), g.Close())
	case <-g.ended:
		return errors.Join(ErrGone, g.Close())
	}
}

// Holds tells whether a process, by its number in the agent's pid namespace, is one of the guard's descendants.
func (g *Guard) Holds(pid int) bool { return proc.Host{}.Descends(pid, g.PID()) }

func (g *Guard) id() proc.ID { return proc.ID{PID: g.process.PID(), Start: g.ticks} }

// PID of the guard.
func (g *Guard) PID() int { return g.process.PID() }

// StartTicks is when the guard started, in clock ticks after boot; with PID and boot id it names it for ever.
func (g *Guard) StartTicks() uint64 { return g.ticks }

// Events are what happens, in order. The channel is closed after the last one.
func (g *Guard) Events() <-chan Event { return g.events }

// Start runs a process and returns its pid once its exec has happened. The error is a *StartError when the
// process could not be started, ErrBusy while the last one or its leftovers exist, ErrGone after the
// guard's end. Another Start may follow a failed one.
func (g *Guard) Start(s Spec) (pid int, err error) {
	if len(s.Argv) == 0 {
		return 0, errors.New("start: argv is empty")
	}
	p, err := s.payload(g.options)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	reply, err := g.reserve(s.Attempt)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	g.around.begin()
	if err := g.sendStart(s, p); err != nil {
		g.release()
		return 0, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	if err := <-reply; err != nil {
		return 0, fmt.Errorf("start %s: %w", filepath.Base(s.Argv[0]), g.explain(err, s, p.Dir))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pid, nil
}

func (g *Guard) reserve(attempt int) (chan error, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.state == gone || g.closing:
		return nil, ErrGone
	case g.state != idle:
		return nil, ErrBusy
	}
	g.state, g.attempt, g.reply, g.pid = starting, attempt, make(chan error, 1), 0
	return g.reply, nil
}

func (g *Guard) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == starting {
		g.state, g.reply = idle, nil
	}
}

func (g *Guard) sendStart(s Spec, p guard.Payload) error {
	b, err := p.Encode()
	if err != nil {
		return err
	}
	payload, err := sealedMemfd("muster-start", bytes.NewReader(b), false)
	if err != nil {
		return err
	}
	defer payload.Close()
	dir := s.LogDir
	if dir == "" {
		dir = g.options.LogDir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("log folder: %w", err)
	}
	logs, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("log folder: %w", err)
	}
	defer logs.Close()
	files := []*os.File{payload, logs}
	for _, own := range []*os.File{s.Stdin, s.Stdout} {
		if own != nil {
			files = append(files, own)
		}
	}
	if procs := g.procs(); procs != nil {
		files = append(files, procs)
	}
	return g.send(guard.Message{Kind: guard.Start, Start: uint32(s.Attempt)}, files...)
}

// outsider is a boundary that the guard itself stays out of: each process enters by the cgroup.procs file,
// open for writing, that procs returns.
type outsider interface{ procs() *os.File }

func (g *Guard) procs() *os.File {
	if o, ok := g.around.(outsider); ok {
		return o.procs()
	}
	return nil
}

// explain says on what the act failed, and what a bare errno hides.
func (g *Guard) explain(err error, s Spec, dir string) error {
	var e *StartError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Act {
	case "start":
		return ErrBusy // of a session that is being killed
	case "chdir":
		e.Path = dir
	case "exec":
		e.Path = s.Argv[0]
		e.Hint = execHint(e.Err, s, dir, len(g.options.Confine.Root.Layers) == 0)
	}
	return e
}

// execHint looks at the file itself only where the process sees the host's.
func execHint(err error, s Spec, dir string, hosts bool) string {
	path := s.Argv[0]
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return "no program of this machine and no #! line"
	case errors.Is(err, unix.E2BIG):
		return "arguments and environment are too long; one string holds at most 131071 bytes"
	case !errors.Is(err, fs.ErrNotExist):
		return ""
	case !strings.Contains(path, "/"):
		return "looked for in PATH"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if _, err := os.Stat(path); err == nil && hosts {
		return "the file is there: the interpreter or loader that it names is not"
	}
	return ""
}

// Signal sends sig to the main process only: the one that was adopted last, if any; while a start lingers and none is, to
// all that it has left. os.ErrProcessDone when there is none.
func (g *Guard) Signal(sig syscall.Signal) error {
	g.mu.Lock()
	alive, attempt := g.state == running || g.state == lingering, g.attempt
	g.mu.Unlock()
	if !alive {
		return fmt.Errorf("signal %s: %w", signalName(sig), os.ErrProcessDone)
	}
	return g.send(guard.Message{Kind: guard.Signal, Start: uint32(attempt), A: int64(sig)})
}

// Kill kills every descendant of the guard until none is left. The event Empty says when that is proved;
// it comes also when nothing was there.
func (g *Guard) Kill() error {
	g.mu.Lock()
	attempt := g.attempt
	g.mu.Unlock()
	return errors.Join(g.around.kill(), g.send(guard.Message{Kind: guard.Kill, Start: uint32(attempt)}))
}

// Grow sets another limit of memory, in bytes, for what is started from now on.
func (g *Guard) Grow(memory int64) error {
	if err := g.around.grow(memory); err != nil {
		return fmt.Errorf("set memory limit: %w", err)
	}
	return nil
}

// Remains are what the next agent must clear if this one is killed.
func (g *Guard) Remains() Remains { return g.around.left() }

// Feed arms the dead-man timer or winds it up again: unless it is fed with a later one before that moment of
// CLOCK_BOOTTIME, the guard kills everything and ends. 0 disarms it. A moment that is over ends everything at once: however long
// the caller stood still between its look at the clock and this, no time is won by that.
func (g *Guard) Feed(end time.Duration) error {
	return g.send(guard.Message{Kind: guard.Feed, A: end.Nanoseconds()})
}

// Close kills everything and returns when it is proved gone, the guard included. When something
// will not die it returns a *StuckError; the guard stays and goes on trying.
func (g *Guard) Close() error {
	g.closeOnce.Do(func() { g.closeErr = g.close() })
	return g.closeErr
}

func (g *Guard) close() error {
	defer close(g.closed)
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	if err := g.lifeline.Close(); err != nil {
		return fmt.Errorf("close guard: %w", err)
	}
	if !g.awaitEnd(g.patience) {
		// Stopped, or its disk hangs. Killed, it leaves its processes to us.
		if err := g.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("close guard: %w", err)
		}
		if !g.awaitEnd(sweepTime + time.Second) {
			return fmt.Errorf("close guard: %w", proc.Stuck([]int{g.PID()}))
		}
	}
	g.mu.Lock()
	left := g.left
	g.mu.Unlock()
	if len(left) > 0 {
		return fmt.Errorf("close guard: %w", &proc.StuckError{Processes: left})
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	if err := g.around.remove(ctx); err != nil {
		return fmt.Errorf("close guard: %w", err)
	}
	return nil
}

// closePatience is more than the guard needs to name what is stuck (5 s) and to give up on a disk (10 s).
const closePatience = 20 * time.Second

// awaitEnd is true when the guard has ended or has named somebody who will not die.
func (g *Guard) awaitEnd(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-g.ended:
	case <-g.stuck:
	case <-timer.C:
		return false
	}
	return true
}

// A guard that does not read for this long is stopped or lost; the lifeline still works.
const sendTimeout = 10 * time.Second

func (g *Guard) send(m guard.Message, files ...*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	if err := g.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if _, _, err := g.conn.WriteMsgUnix(m.Encode(), rights, nil); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("guard does not answer: %w", err)
		}
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}
