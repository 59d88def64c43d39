package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
)

// Options are what all starts of one guard share.
type Options struct {
	LogDir      string // default of Spec.LogDir
	Logger      *slog.Logger
	RotateBytes int64 // a log file is renamed .1 at this size; 0: 256 MiB, -1: never
	Keep        int   // files of one stream in all, the live one included; 0: 4
	Confine     Confinement
	// Caps are the most capabilities that a process of this guard may have; nil: not touched.
	Caps *Caps
	// OOMScoreAdj and Nice are those of processes whose Spec has none of its own, as far as the agent is permitted to.
	OOMScoreAdj, Nice int
	// NoNewPrivs forbids set-user-id and file capabilities to give anything (PR_SET_NO_NEW_PRIVS).
	NoNewPrivs bool
}

func (o Options) withDefaults() Options {
	o.RotateBytes = max(0, cmp.Or(o.RotateBytes, 256<<20))
	o.Keep = cmp.Or(o.Keep, 4)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// launch starts the guard's program with its two descriptors, which become 3 and 4, and the program itself
// as 5; what it puts around it is the boundary.
type launch func(lifeline, socket, exe *os.File) (child, boundary, error)

// park starts a guard that waits for its first Start. It makes the calling process a subreaper: what a
// guard leaves when it is killed becomes the agent's own to kill. ctx bounds the parking only.
func park(ctx context.Context, o Options, run launch) (*Guard, error) {
	g, err := parkGuard(ctx, o.withDefaults(), run)
	if err != nil {
		return nil, fmt.Errorf("park guard: %w", err)
	}
	return g, nil
}

func parkGuard(ctx context.Context, o Options, run launch) (*Guard, error) {
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
	living.RLock()
	process, around, err := run(lifelineEnd, socket, exe)
	if err != nil {
		living.RUnlock()
		return nil, errors.Join(err, conn.Close(), lifeline.Close())
	}
	g := newGuard(o, process, around, conn, lifeline)
	living.RUnlock()
	// Held here as well, the guard's end of the socket would hide from the reader that the guard has ended.
	if err := errors.Join(socket.Close(), lifelineEnd.Close()); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, g.awaitHello(ctx)
}

// execGuard gives the guard its session, so that a signal to the agent's group misses it.
func execGuard(lifeline, socket, exe *os.File) (*os.Process, error) {
	return execGuardIn(nil, lifeline, socket, exe)
}

// execGuardIn has the guard born in the v2 cgroup of an open folder; nil: in the agent's.
func execGuardIn(group, lifeline, socket, exe *os.File) (*os.Process, error) {
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
	// The number of exe is fixed by its place: guard.FDSocket + 1.
	return os.StartProcess("/proc/self/fd/5", []string{"muster-guard"}, &os.ProcAttr{
		Env:   []string{},
		Files: []*os.File{in, out, out, lifeline, socket, exe},
		Sys:   sys,
	})
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

// sealedMemfd holds the bytes of r and can be changed by nobody, us included.
func sealedMemfd(name string, r io.Reader, exec bool) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	mode := unix.MFD_NOEXEC_SEAL
	if exec {
		mode = unix.MFD_EXEC
	}
	fd, err := unix.MemfdCreate(name, flags|mode)
	if errors.Is(err, unix.EINVAL) { // the two modes came with Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("make memfd %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := io.Copy(f, r); err != nil {
		return nil, errors.Join(fmt.Errorf("fill memfd %s: %w", name, err), f.Close())
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(fmt.Errorf("seal memfd %s: %w", name, err), f.Close())
	}
	return f, nil
}
