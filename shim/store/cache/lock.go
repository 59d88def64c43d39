package cache

import (
	"context"
	"path/filepath"

	"github.com/muster-agent/muster/packages/cachedir"
)

// lock is of a file below locks; locks/NAME is told in doc.go.
type lock = cachedir.Lock

func (c cache) lock(ctx context.Context, name string, how int) (*lock, error) {
	return cachedir.Take(ctx, filepath.Join(c.root, "locks", name), how, nil)
}

// tryLock is lock without the wait: nil when somebody holds it.
func (c cache) tryLock(name string, how int) (*lock, error) {
	return cachedir.Try(filepath.Join(c.root, "locks", name), how)
}
