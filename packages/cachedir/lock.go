package cachedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/wait"
)

// Lock is a held flock(2): it goes with the process at the latest. Lock files are never removed, for a lock on a
// removed file excludes no process.
type Lock struct{ f *os.File }

// Take waits until the file at path is locked, as how says: syscall.LOCK_SH or LOCK_EX. waiting is called once, before
// the first wait; it may be nil.
func Take(ctx context.Context, path string, how int, waiting func()) (*Lock, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	// flock has no way to be called off, so a wait is a question asked again and again
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		held, err := try(f, how)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if held {
			return &Lock{f}, nil
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		if err := wait.For(ctx, pause); err != nil {
			return nil, errors.Join(fmt.Errorf("wait for lock %s of another process: %w", path, err), f.Close())
		}
	}
}

// Try is Take without the wait: nil when another process holds the lock.
func Try(path string, how int) (*Lock, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	held, err := try(f, how)
	if err != nil || !held {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{f}, nil
}

func open(path string) (*os.File, error) { return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) }

func try(f *os.File, how int) (bool, error) {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return false, nil
	}
	return false, fmt.Errorf("lock %s: %w", f.Name(), err)
}

// Touch notes on the lock file that what it stands for is used now.
func (l *Lock) Touch() error {
	now := time.Now()
	return os.Chtimes(l.f.Name(), now, now)
}

// Used is when what the lock stands for was last used, or the lock file made.
func (l *Lock) Used() (time.Time, error) {
	info, err := l.f.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Release gives it up.
func (l *Lock) Release() error { return l.f.Close() }
