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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// Guard is a guard that waits or runs a process. An agent has one at a time. Its methods may be called from any
// goroutine. The caller must Close it, which also ends its goroutines.
//
// When the guard itself dies, the agent, as the next subreaper, inherits its descendants. They are known
// by their session, which is never the agent's: nothing can enter a session from outside. So all of
// the agent's children in foreign sessions are killed then, and the rest of the agent must start its own
// helpers without setsid.
type Guard struct {
	options  Options
	process  child
	id       proc.ID
	around   boundary
	lifeline *os.File

	link     *link
	hello    chan int64 // the guard's first message: the protocol's version
	events   *eventQueue
	starts   starts
	turn     sync.Mutex // held by a Kill: what starts before it is over would be killed too
	sessions sessionTable
	ending   *ending
	work     sync.WaitGroup // the goroutines of this guard
}

func newGuard(o Options, p child, around boundary, conn *net.UnixConn, lifeline *os.File) *Guard {
	g := &Guard{
		options: o, process: p, id: proc.ID{PID: p.PID()}, around: around, lifeline: lifeline,
		link: &link{conn: conn, requests: map[int64]request{}}, hello: make(chan int64, 1),
		events: newEventQueue(o.Logger), sessions: sessionTable{byID: map[int64]*Session{}}, ending: newEnding(),
	}
	if s, err := (proc.Host{}).Stat(p.PID()); err == nil {
		g.id = s.ID()
	}
	liveGuards.add(g.id)
	g.work.Go(g.events.run)
	g.work.Go(g.read)
	return g
}

func (g *Guard) awaitHello(ctx context.Context) error {
	select {
	case version := <-g.hello:
		if version != guard.Version {
			return errors.Join(fmt.Errorf("it speaks protocol %d, want %d: run make build", version, guard.Version),
				g.Close())
		}
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), g.Close())
	case <-g.ending.ended:
		return errors.Join(ErrGone, g.Close())
	}
}

// Holds tells whether a process, by its number in the agent's pid namespace, is one of the guard's descendants.
func (g *Guard) Holds(pid int) bool { return proc.Host{}.Descends(pid, g.PID()) }

// PID of the guard.
func (g *Guard) PID() int { return g.id.PID }

// StartTicks is when the guard started, in clock ticks after boot; with PID and boot id it names it for ever.
func (g *Guard) StartTicks() uint64 { return g.id.Start }

// Events are what happens, in order. The channel is closed after the last one.
func (g *Guard) Events() <-chan Event { return g.events.out }

// Start runs a process and returns its pid once its exec has happened. The error is a *StartError when the process
// could not be started, ErrGone after the guard's end, ErrLeft as well if it may run all the same. A Start is refused
// while the last process or what it left exists. Another Start may follow a failed one.
func (g *Guard) Start(s Spec) (pid int, err error) {
	if len(s.Argv) == 0 {
		return 0, errors.New("start: argv is empty")
	}
	p, err := s.payload(g.options)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	if closed, _ := g.ending.why(); closed {
		return 0, fmt.Errorf("start %s: %w", s.Argv[0], ErrGone)
	}
	reply, err := g.begin(s, p)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	if err := <-reply; err != nil {
		return 0, fmt.Errorf("start %s: %w", filepath.Base(s.Argv[0]), g.explain(err, s, p.Dir))
	}
	_, _, pid = g.starts.current()
	return pid, nil
}

// begin has the guard start a process; its outcome comes on the channel.
func (g *Guard) begin(s Spec, p guard.Payload) (<-chan error, error) {
	g.turn.Lock()
	defer g.turn.Unlock()
	reply, err := g.starts.reserve(s.Attempt)
	if err != nil {
		return nil, err
	}
	g.around.begin()
	if err := g.sendStart(s, p); err != nil {
		g.starts.release()
		return nil, err
	}
	return reply, nil
}

func (g *Guard) sendStart(s Spec, p guard.Payload) error {
	b, err := p.Encode()
	if err != nil {
		return err
	}
	if err := g.raiseLimits(p.Limits); err != nil {
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
	if procs := g.around.procs(); procs != nil {
		files = append(files, procs)
	}
	return g.link.send(guard.Message{Kind: guard.Start, Start: uint32(s.Attempt)}, files...)
}

// raiseLimits raises the guard's own hard limits to those that it is to set: root in a user namespace may not.
func (g *Guard) raiseLimits(limits []guard.Limit) error {
	if g.options.Confine.IDs == nil {
		return nil
	}
	for _, l := range limits {
		var now unix.Rlimit
		if err := unix.Prlimit(g.PID(), int(l.Resource), nil, &now); err != nil {
			return fmt.Errorf("limits of the guard: %w", err)
		}
		if now.Max >= l.Hard {
			continue
		}
		now.Max = l.Hard
		err := unix.Prlimit(g.PID(), int(l.Resource), &now, nil)
		if err != nil && !errors.Is(err, unix.EPERM) { // then the guard's own attempt says so
			return fmt.Errorf("raise limit %s: %w", rlimitNames[l.Resource], err)
		}
	}
	return nil
}

// explain adds to a failed act its path, and what a bare errno hides.
func (g *Guard) explain(err error, s Spec, dir string) error {
	var e *StartError
	if !errors.As(err, &e) {
		return err
	}
	if name, ok := strings.CutPrefix(e.Act, "set limit "); ok && errors.Is(e.Err, unix.EPERM) {
		e.Hint = g.limitHint(name, s.Rlimits[name])
	}
	switch e.Act {
	case "start":
		return errBusy // of a session that is being killed
	case "chdir":
		e.Path = dir
	case "exec":
		e.Path = s.Argv[0]
		if errors.Is(e.Err, fs.ErrPermission) {
			hint, absent := g.closedHint(s, dir)
			if e.Hint = hint; absent {
				e.Err = unix.ENOENT
			}
			break
		}
		e.Hint = g.execHint(e.Err, s, dir)
	}
	return e
}

// execHint looks at the file itself only where the process sees the host's.
func (g *Guard) execHint(err error, s Spec, dir string) string {
	path := s.Argv[0]
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return "no program of this machine and no #! line"
	case errors.Is(err, unix.E2BIG):
		return "arguments and environment are too long; one string holds at most 131071 bytes"
	case !errors.Is(err, fs.ErrNotExist):
		return ""
	case !strings.Contains(path, "/"):
		return "looked for in PATH: install it on the host, or in the image that muster.image names"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if _, err := os.Stat(path); err != nil || len(g.options.Confine.Root.Layers) > 0 {
		return ""
	}
	if tmp := g.ownFolder(path); tmp != "" {
		return "the host has it, but " + tmp + " in the container is the container's own: take a place outside of " +
			tmp
	}
	return "the file is there: the interpreter or loader that it names is not"
}

// ownFolder is the folder of a container on the host's root that hides what the host has at path; "": none.
func (g *Guard) ownFolder(path string) string {
	below := func(dir string) bool { return strings.HasPrefix(path, dir+"/") }
	seen := func(m container.Mount) bool { return below(m.To) }
	if !g.around.hasOwnPIDs() || slices.ContainsFunc(g.options.Confine.Mounts, seen) {
		return ""
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if below(dir) {
			return dir
		}
	}
	return ""
}

// Signal sends sig to the main process only: the one that was adopted last, if any; while a start lingers and none is,
// to all that it has left. os.ErrProcessDone when there is none.
func (g *Guard) Signal(sig syscall.Signal) error {
	now, attempt, _ := g.starts.current()
	if !now.hasMain() {
		return fmt.Errorf("signal %s: %w", signalName(sig), os.ErrProcessDone)
	}
	return g.link.send(guard.Message{Kind: guard.Signal, Start: uint32(attempt), A: int64(sig)})
}

// Kill kills every descendant of the guard until none is left. The event Empty follows when that is proved, also when
// there was none. A Start waits until Kill has returned.
func (g *Guard) Kill() error {
	g.turn.Lock()
	defer g.turn.Unlock()
	was, attempt, _ := g.starts.current()
	err := g.around.kill()
	if now, _, _ := g.starts.current(); now == idle && was != idle {
		return err // Empty was told meanwhile
	}
	err = errors.Join(err, g.link.send(guard.Message{Kind: guard.Kill, Start: uint32(attempt)}))
	g.work.Go(func() { g.unstopped(attempt) })
	return err
}

// stoppedPeriod is how often a guard that kills is looked at.
const stoppedPeriod = 200 * time.Millisecond

// unstopped sees that a Kill comes about. A process that has the guard's ids may have stopped the guard (SIGSTOP): it
// is killed then, and leaves its processes to the agent.
func (g *Guard) unstopped(attempt int) {
	for {
		now, current, _ := g.starts.current()
		if now == idle || now == gone || current != attempt {
			return
		}
		if s, err := (proc.Host{}).Stat(g.PID()); err == nil && s.ID() == g.id && s.State == 'T' {
			g.options.Logger.Warn("guard is stopped, and is killed with its processes", "guard", g.PID())
			if err := g.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				g.options.Logger.Warn("guard not killed", "err", err)
			}
			return
		}
		select {
		case <-g.ending.ended:
			return
		case <-time.After(stoppedPeriod):
		}
	}
}

// Grow sets another memory limit, in bytes, for what is started from now on.
func (g *Guard) Grow(memory int64) error {
	if err := g.around.grow(memory); err != nil {
		return fmt.Errorf("set memory limit: %w", err)
	}
	return nil
}

// Remains are what the next agent must clear if this one is killed.
func (g *Guard) Remains() Remains { return g.around.left() }

// Feed arms the dead-man timer: unless Feed is called with a later moment before that moment of CLOCK_BOOTTIME, the
// guard kills everything and ends. 0 disarms it. A moment in the past ends everything at once: an agent that was
// stopped between reading the clock and this call wins no time.
func (g *Guard) Feed(end time.Duration) error {
	return g.link.send(guard.Message{Kind: guard.Feed, A: end.Nanoseconds()})
}
