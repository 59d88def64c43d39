package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// Size is that of a terminal, in characters.
type Size struct{ Rows, Columns uint16 }

// Session is a program that Exec has started. Its methods may be called from any goroutine.
type Session struct {
	// Stdin is the program's input; closing it is the end of input, which a terminal gets as ^D.
	Stdin io.WriteCloser
	// Stdout and Stderr end when the program has ended and what was written until then is read, though a
	// process that it left behind may hold them open. On a terminal Stdout has both.
	Stdout, Stderr io.Reader

	link          *link
	agentPID      func(pid int) int // the agent's number of a process that the guard names
	id            int64
	pid           int
	mark          string     // variable of its environment
	files         []*os.File // ours
	outputs       []*os.File // those of files that are read
	terminal      *os.File   // master; nil: pipes
	wantsTerminal bool       // a terminal
	started       chan error // one answer
	done          chan struct{}
	exit          Exit  // once done
	err           error // once done
}

// newSession makes a session. stdio is what its program gets as stdin, stdout and stderr, nothing for a terminal;
// theirs are the ends to close once the program has them.
func newSession(g *Guard, e ExecSpec) (s *Session, stdio, theirs []*os.File, err error) {
	s = &Session{
		link: g.link, agentPID: g.agentPID, wantsTerminal: e.Terminal != nil, started: make(chan error, 1),
		done: make(chan struct{}),
	}
	if s.wantsTerminal {
		return s, nil, nil, nil
	}
	read, write, err := halfPipe(true)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	s.Stdin, s.files = write, []*os.File{write}
	stdio, theirs = []*os.File{read}, []*os.File{read}
	for _, out := range []struct {
		given *os.File
		to    *io.Reader
	}{{e.Stdout, &s.Stdout}, {e.Stderr, &s.Stderr}} {
		if out.given != nil {
			*out.to = strings.NewReader("")
			stdio = append(stdio, out.given)
			continue
		}
		read, write, err := halfPipe(false)
		if err != nil {
			closeAll(append(theirs, s.files...))
			return nil, nil, nil, fmt.Errorf("make pipe: %w", err)
		}
		*out.to = &output{file: read}
		s.files, s.outputs = append(s.files, read), append(s.outputs, read)
		stdio, theirs = append(stdio, write), append(theirs, write)
	}
	return s, stdio, theirs, nil
}

// halfPipe makes a pipe of which one end is ours, for Go's poller, and the other a program's, which blocks.
func halfPipe(writes bool) (read, write *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	ours := fds[0]
	if writes {
		ours = fds[1]
	}
	err = unix.SetNonblock(ours, true)
	read, write = os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe")
	if err != nil {
		return nil, nil, errors.Join(err, read.Close(), write.Close())
	}
	return read, write, nil
}

// begin reports that the program has started.
func (s *Session) begin(pid int, terminal *os.File) {
	if s.wantsTerminal && terminal == nil { // then it is closed, and the program hung up on
		s.started <- fmt.Errorf("take terminal: %w", unix.EMFILE)
		return
	}
	s.pid = pid
	if terminal != nil {
		s.terminal = terminal
		s.files, s.outputs = []*os.File{terminal}, []*os.File{terminal}
		s.Stdin, s.Stdout, s.Stderr = terminalInput{terminal}, &output{file: terminal}, strings.NewReader("")
	}
	s.started <- nil
}

// finish reports the program's end, after begin.
func (s *Session) finish(x Exit, err error) {
	s.exit, s.err = x, err
	close(s.done)
	for _, f := range s.outputs {
		_ = f.SetReadDeadline(time.Unix(1, 0)) // a reader reads what is left
	}
}

// lose reports that the guard has ended and the program's end will not be seen.
func (s *Session) lose(why error) {
	if s.pid == 0 {
		s.started <- why
		return
	}
	s.finish(Exit{At: time.Now(), Message: "ended unseen when its guard was lost"}, why)
}

// PID of the program in the guard's pid namespace.
func (s *Session) PID() int { return s.pid }

// Resize sets the size of the terminal, of which the kernel notifies the program. Without a terminal it does nothing.
func (s *Session) Resize(z Size) error {
	if s.terminal == nil {
		return nil
	}
	raw, err := s.terminal.SyscallConn()
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: z.Rows, Col: z.Columns})
	})
	if err = errors.Join(err, set); err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// Signal sends sig to the process group that the program leads. os.ErrProcessDone when it has ended.
func (s *Session) Signal(sig syscall.Signal) error {
	select {
	case <-s.done:
		return fmt.Errorf("signal %s: %w", signalName(sig), os.ErrProcessDone)
	default:
		return s.link.send(guard.Message{Kind: guard.ExecSig, A: s.id, B: int64(sig)})
	}
}

// Kill kills the program and all that it has started, and returns when none of that is left; the app is not touched.
// Kill may be called after the program's end, for what it left. It finds the program's descendants, whatever sessions
// they make; the members of their sessions; and processes with the exec's mark in their environment, though orphaned by
// a double fork, with their descendants. It does not find an orphan in a session of its own that was given another
// environment, or whose program is set-user-id or may not be read: the environment of such a process is not readable.
// The app's main process and its descendants are never touched. The error is a *proc.StuckError with a process that is
// alive 5 s after SIGKILL, or ErrGone after the guard's end. Kill is refused when too many sessions are being killed.
func (s *Session) Kill() error {
	m, err := s.link.ask(guard.Message{Kind: guard.ExecKill, B: s.id, Text: s.mark}, nil)
	if err != nil {
		return fmt.Errorf("kill session: %w", err)
	}
	switch m.B {
	case 0:
		return nil
	case int64(syscall.EAGAIN):
		return fmt.Errorf("kill session: %w: %d are being killed", errBusy, guard.MostExecs)
	case int64(syscall.ETIMEDOUT):
		p := proc.Describe(s.agentPID(int(m.C)))
		p.Name = m.Text
		return fmt.Errorf("kill session: %w", &proc.StuckError{Processes: []proc.StuckProcess{p}})
	default:
		return fmt.Errorf("kill session: %w", syscall.Errno(m.B))
	}
}

// giveUp kills a program that nobody waits for, with all that it has started: what were left of it would be taken for a
// part of the app, and its end for the app's.
func (s *Session) giveUp() { _ = s.Kill() } // a guard that is busy or gone says so, and its end ends the program

// Done is closed at the program's end.
func (s *Session) Done() <-chan struct{} { return s.done }

// Wait returns how the program ended; the error is ErrGone when the guard ended before it.
func (s *Session) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-s.done:
		return s.exit, s.err
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

// Close closes the streams. A program that has not ended gets SIGHUP, and its output is not read any more.
func (s *Session) Close() error {
	var err error
	if s.pid != 0 && s.terminal == nil { // closing a terminal sends SIGHUP
		if err = s.Signal(syscall.SIGHUP); errors.Is(err, os.ErrProcessDone) || errors.Is(err, ErrGone) {
			err = nil
		}
	}
	for _, f := range s.files {
		if e := f.Close(); e != nil && !errors.Is(e, os.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// terminalInput writes to a terminal as its user would.
type terminalInput struct{ terminal *os.File }

func (t terminalInput) Write(b []byte) (int, error) { return t.terminal.Write(b) }

// Close sends the end of input, ^D.
func (t terminalInput) Close() error {
	_, err := t.terminal.Write([]byte{4})
	return err
}

// mostLeftOver is more than a pipe (64 KiB) or a terminal holds: what comes after it was written after the program's
// end.
const mostLeftOver = 128 << 10

// output reads what a program writes. A passed deadline means that the program has ended: then only what is already
// there is read.
type output struct {
	file     *os.File
	ended    bool
	leftOver int // since then
}

func (o *output) Read(b []byte) (int, error) {
	if !o.ended {
		n, err := o.file.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, endOfTerminal(err)
		}
		o.ended = true
		if err := o.file.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	if o.leftOver >= mostLeftOver {
		return 0, io.EOF
	}
	n, err := readNow(o.file, b)
	o.leftOver += n
	return n, err
}

// readNow reads what is there, without waiting; io.EOF when there is nothing.
func readNow(f *os.File, b []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var got error
	err = raw.Read(func(fd uintptr) bool {
		for {
			if n, got = unix.Read(int(fd), b); !errors.Is(got, unix.EINTR) {
				return true
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case n > 0:
		return n, nil
	case got == nil || errors.Is(got, unix.EAGAIN):
		return 0, io.EOF
	}
	return 0, endOfTerminal(got)
}

// endOfTerminal turns EIO, the answer of a terminal that no process holds open any more, into the end.
func endOfTerminal(err error) error {
	if errors.Is(err, unix.EIO) {
		return io.EOF
	}
	return err
}
