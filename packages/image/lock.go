package image

import (
	"context"
	"path/filepath"
	"syscall"

	"github.com/muster-agent/muster/packages/cachedir"
)

// lock is of a file below locks.
type lock = cachedir.Lock

// lock waits until it is held. waiting is called once, before the first wait.
func (c cache) lock(ctx context.Context, name string, how int, waiting func()) (*lock, error) {
	return cachedir.Take(ctx, filepath.Join(c.root, "locks", name), how, waiting)
}

// tryLock takes a lock alone, without the wait: nil when another process holds it.
func (c cache) tryLock(name string) (*lock, error) {
	return cachedir.Try(filepath.Join(c.root, "locks", name), syscall.LOCK_EX)
}
