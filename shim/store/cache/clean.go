package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// Removed is a file that Clean has removed from the cache.
type Removed struct {
	SHA256 string
	Bytes  int64
	Used   time.Time // last use
}

// Keep says which files stay in the cache.
type Keep struct {
	Since time.Time // files used since then; zero: all
	Bytes int64     // limit of the most recently used files; 0: none
	Dry   bool      // remove nothing, find what would be removed
}

// Clean removes the files that no process holds and that Keep does not keep, oldest first, and the remains of downloads
// that broke before Keep.Since. dir is Request.CacheDir. It returns what it removed.
func Clean(ctx context.Context, dir string, keep Keep) ([]Removed, error) {
	if _, err := os.Lstat(filepath.Join(dir, "fetch")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c, err := openCache(dir)
	if err != nil {
		return nil, err
	}
	all, bytes, err := c.contents()
	if err != nil {
		return nil, fmt.Errorf("clean %s: %w", c.root, err)
	}
	var gone []Removed
	for _, r := range all {
		if ctx.Err() != nil {
			return gone, ctx.Err()
		}
		if !r.Used.Before(keep.Since) && (keep.Bytes <= 0 || bytes <= keep.Bytes) {
			continue
		}
		removed, err := c.sweep(r, keep.Dry)
		if err != nil {
			return gone, fmt.Errorf("clean %s: %w", c.contentPath(r.SHA256), err)
		}
		if removed {
			bytes -= r.Bytes
			gone = append(gone, r)
		}
	}
	if keep.Dry {
		return gone, nil
	}
	return gone, errors.Join(c.sweepPartial(keep.Since), c.sweepIndex())
}

// contents are the complete files, least recently used first, and their total size.
func (c cache) contents() (all []Removed, bytes int64, err error) {
	entries, err := os.ReadDir(filepath.Join(c.root, "sha256"))
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		r := Removed{SHA256: e.Name(), Bytes: info.Size(), Used: info.ModTime()}
		if used, err := os.Stat(filepath.Join(c.root, "locks", "sha256-"+e.Name())); err == nil {
			r.Used = used.ModTime()
		}
		bytes += r.Bytes
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Removed) int {
		return cmp.Or(a.Used.Compare(b.Used), cmp.Compare(a.SHA256, b.SHA256))
	})
	return all, bytes, nil
}

// sweep removes a file if no process holds it and none has used it meanwhile.
func (c cache) sweep(r Removed, dry bool) (done bool, err error) {
	_, err = os.Lstat(filepath.Join(c.root, "locks", "sha256-"+r.SHA256))
	fresh := errors.Is(err, fs.ErrNotExist) // the lock file has the time of the last use; a new one has none
	if fresh && dry {
		return true, nil // a lock file that is made now would keep the file
	}
	held, err := c.tryLock("sha256-"+r.SHA256, syscall.LOCK_EX)
	if err != nil || held == nil {
		return false, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	used, err := held.Used()
	if err != nil {
		return false, err
	}
	if !fresh && used.After(r.Used) {
		return false, nil
	}
	if dry {
		return true, nil
	}
	return true, removeIfThere(c.contentPath(r.SHA256))
}

// sweepPartial removes the remains of broken downloads, unless they have been resumed.
func (c cache) sweepPartial(since time.Time) error {
	entries, err := os.ReadDir(filepath.Join(c.root, "partial"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(since) {
			continue
		}
		if err := c.sweepOne(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (c cache) sweepOne(name string) (err error) {
	url, _, _ := strings.Cut(name, ".json")
	if strings.HasPrefix(name, ".new-") { // of a process that was killed while it wrote
		return removeIfThere(filepath.Join(c.root, "partial", name))
	}
	held, err := c.tryLock("url-"+url, syscall.LOCK_EX)
	if err != nil || held == nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	return removeIfThere(filepath.Join(c.root, "partial", name))
}

// sweepIndex removes the records of URLs without content.
func (c cache) sweepIndex() error {
	found, err := filepath.Glob(filepath.Join(c.root, "index", "*.json"))
	if err != nil {
		return err
	}
	for _, path := range found {
		var r remembered
		if readJSON(path, &r) && store.IsDigest(r.Digest) {
			if _, err := os.Lstat(c.contentPath(r.Digest)); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		if err := removeIfThere(path); err != nil {
			return err
		}
	}
	return nil
}
