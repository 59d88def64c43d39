package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// launch starts the guard's program with its two descriptors, which become 3 and 4, and the program itself as 5. It
// returns the boundary around the program.
type launch func(lifeline, socket, exe *os.File) (child, boundary, error)

// startGuard starts a guard that waits for its first Start. It makes the calling process a subreaper: what a guard
// leaves when it is killed becomes the agent's own to kill. ctx bounds the making only.
func startGuard(ctx context.Context, o Options, run launch) (*Guard, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	g, err := tryStartGuard(ctx, o, run)
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return g, nil
}

func tryStartGuard(ctx context.Context, o Options, run launch) (*Guard, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	program, err := guard.Open()
	if err != nil {
		return nil, err
	}
	defer program.Close()
	exe, err := sealedMemfd("muster-guard", program, true)
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	conn, socket, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	lifelineEnd, lifeline, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer lifelineEnd.Close()
	liveGuards.RLock()
	process, around, err := run(lifelineEnd, socket, exe)
	if err != nil {
		liveGuards.RUnlock()
		return nil, errors.Join(err, conn.Close(), lifeline.Close())
	}
	g := newGuard(o, process, around, conn, lifeline)
	liveGuards.RUnlock()
	// While the agent held the guard's end of the socket too, the reader would not see that the guard has ended.
	if err := errors.Join(socket.Close(), lifelineEnd.Close()); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, g.awaitHello(ctx)
}

// execGuard gives the guard its session, so that a signal to the agent's group misses it.
func execGuard(ids *subids.Map, lifeline, socket, exe *os.File) (*os.Process, error) {
	return execGuardIn(nil, ids, lifeline, socket, exe)
}

// execGuardIn has the guard born in the v2 cgroup of an open folder; nil: in the agent's. With ids the guard is root in
// a user namespace of its own.
func execGuardIn(group *os.File, ids *subids.Map, lifeline, socket, exe *os.File) (*os.Process, error) {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	sys := &syscall.SysProcAttr{Setsid: true}
	if group != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, int(group.Fd())
	}
	if ids != nil {
		sys.Cloneflags = unix.CLONE_NEWUSER
		sys.UidMappings, sys.GidMappings, sys.GidMappingsEnableSetgroups = ids.ProcUIDs(), ids.ProcGIDs(), true
		sys.Credential = &syscall.Credential{}
	}
	// The number of exe is fixed by its position: guard.FDSocket + 1.
	process, err := os.StartProcess("/proc/self/fd/5", []string{"muster-guard"}, &os.ProcAttr{
		Env:   []string{},
		Files: []*os.File{in, out, out, lifeline, socket, exe},
		Sys:   sys,
	})
	if err != nil && ids != nil {
		err = fmt.Errorf("in a user namespace with subordinate ids: %w", err)
	}
	return process, err
}

func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "guard"), os.NewFile(uintptr(fds[1]), "agent")
	defer ours.Close() // FileConn has its own copy
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}
