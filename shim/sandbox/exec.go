package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/guard"
)

// ExecSpec is one program to run beside the app: in its namespaces and cgroup, held to what Options hold the app to.
type ExecSpec struct {
	Argv     []string    // a name without a slash is looked up in the PATH of Env
	Env      []string    // NAME=value, whole: nothing is inherited
	Dir      string      // working directory
	User     *guard.User // nil: that of Options.Confine, else the agent's own
	Terminal *Size       // nil: pipes
	Rlimits  map[string]Rlimit
	// Awaited delays the end of the app until the program has ended: until then only Kill kills. It is for a program
	// that ends the app and has work to do after that.
	Awaited bool
	// Stdout and Stderr, when set, get what the program writes, in place of a pipe: then the session's own are empty.
	// They remain the caller's, who may close them once Exec has returned. A terminal takes none.
	Stdout, Stderr *os.File
}

// execMark is the variable that every exec has in its environment, with a value of its own: by it Session.Kill finds
// processes that have left their parents.
const execMark = "MUSTER_EXEC"

// Exec runs a program and returns once its exec has happened. It is possible while the guard waits and while an app
// runs, and refused while what an app left is being killed. The program ends with the app at the latest, unless it is
// Awaited: Empty comes after the end of all sessions. What the program leaves behind belongs to the app. ctx bounds the
// start only. The error is a *StartError when the program could not be started, ErrGone after the guard's end. The
// caller must Close the session.
func (g *Guard) Exec(ctx context.Context, e ExecSpec) (*Session, error) {
	if len(e.Argv) == 0 {
		return nil, errors.New("run: argv is empty")
	}
	s, err := g.exec(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", filepath.Base(e.Argv[0]), err)
	}
	return s, nil
}

func (g *Guard) exec(ctx context.Context, e ExecSpec) (*Session, error) {
	if e.Terminal != nil && (e.Stdout != nil || e.Stderr != nil) {
		return nil, errors.New("a terminal is its own output")
	}
	mark := execMark + "=" + rand.Text()
	spec := Spec{Argv: e.Argv, Env: append([]string{mark}, e.Env...), Dir: e.Dir, User: e.User, Rlimits: e.Rlimits}
	p, err := spec.payload(g.options)
	if err != nil {
		return nil, err
	}
	p.Terminal, p.Awaited = e.Terminal != nil, e.Awaited
	s, stdio, theirs, err := newSession(g, e)
	if err != nil {
		return nil, err
	}
	s.mark = mark
	defer closeAll(theirs)
	if err := g.sessions.enroll(s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := g.sendExec(s, p, e.Terminal, stdio); err != nil {
		g.sessions.dismiss(s.id)
		return nil, errors.Join(err, s.Close())
	}
	select {
	case err := <-s.started:
		if err != nil {
			return nil, errors.Join(g.explain(err, spec, p.Dir), s.Close())
		}
		return s, nil
	case <-ctx.Done():
		g.work.Go(func() { // the guard answers, or ends
			if <-s.started == nil {
				s.giveUp()
			}
			_ = s.Close() // the caller already has an error
		})
		return nil, context.Cause(ctx)
	}
}

func (g *Guard) sendExec(s *Session, p guard.Payload, size *Size, stdio []*os.File) error {
	b, err := p.Encode()
	if err != nil {
		return err
	}
	payload, err := sealedMemfd("muster-exec", bytes.NewReader(b), false)
	if err != nil {
		return err
	}
	defer payload.Close()
	m := guard.Message{Kind: guard.Exec, A: s.id}
	if size != nil {
		m.B, m.C = int64(size.Rows), int64(size.Columns)
	}
	files := append([]*os.File{payload}, stdio...)
	if procs := g.around.procs(); procs != nil {
		files = append(files, procs)
	}
	return g.link.send(m, files...)
}

// handleExec passes the guard's message on to a session; terminal is the master that came with it, or nil.
func (g *Guard) handleExec(m guard.Message, terminal *os.File) {
	if m.Kind == guard.Execed {
		if s := g.sessions.get(m.A); s != nil {
			s.begin(int(m.B), terminal)
			return
		}
	} else if s := g.sessions.dismiss(m.A); s != nil && m.Kind == guard.ExecErr {
		s.started <- execError(m)
	} else if s != nil {
		s.finish(exitOf(syscall.WaitStatus(m.B), time.Unix(0, m.C), 0), nil)
	}
	if terminal != nil {
		_ = terminal.Close() // of a session that has ended
	}
}

func execError(m guard.Message) error {
	errno := syscall.Errno(m.B)
	switch {
	case m.Text == "exec" && errno == syscall.EBUSY:
		return errBusy
	case m.Text == "exec" && errno == syscall.EAGAIN:
		return fmt.Errorf("%w: %d sessions live already", errBusy, guard.MostExecs)
	}
	return &StartError{Act: m.Text, Err: errno}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // a pipe's end, only passed on
	}
}
