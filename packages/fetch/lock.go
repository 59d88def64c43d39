package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lock is a held flock(2): it goes with the process at the latest. Lock files are never removed, for a lock on a
// removed file excludes nobody.
type lock struct{ f *os.File }

// lock waits until it is held.
func (c cache) lock(ctx context.Context, name string, how int) (*lock, error) {
	pause := 20 * time.Millisecond
	for { // flock has no way to be called off, so a wait is a question asked again and again
		held, err := c.tryLock(name, how)
		if err != nil || held != nil {
			return held, err
		}
		if err := wait(ctx, pause); err != nil {
			return nil, fmt.Errorf("wait for lock %s of another process: %w", filepath.Join(c.root, "locks", name), err)
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// tryLock is lock without the wait: nil when somebody holds it.
func (c cache) tryLock(name string, how int) (*lock, error) {
	path := filepath.Join(c.root, "locks", name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return &lock{f: f}, nil
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return nil, f.Close()
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
}

// touch notes on the lock file that what it stands for is used now.
func (l *lock) touch() error {
	now := time.Now()
	return os.Chtimes(l.f.Name(), now, now)
}

func (l *lock) release() error { return l.f.Close() }

// wait returns after d, or earlier with the context's cause.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
