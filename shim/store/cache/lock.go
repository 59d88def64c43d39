package cache

import (
	"context"
	"path/filepath"

	"github.com/muster-agent/muster/packages/cachedir"
)

// lock locks a file below locks; see doc.go for the names.
type lock = cachedir.Lock

func (c cache) lock(ctx context.Context, name string, how int) (*lock, error) {
	return cachedir.Take(ctx, filepath.Join(c.root, "locks", name), how, nil)
}

// tryLock is lock without waiting: nil if another process holds it.
func (c cache) tryLock(name string, how int) (*lock, error) {
	return cachedir.Try(filepath.Join(c.root, "locks", name), how)
}
