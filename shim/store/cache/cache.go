package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

// cache is the folder `fetch` of the cache.
type cache struct{ root string }

// openCache makes the folders. The cache holds programs to be run, so it must belong to the caller.
func openCache(dir string) (cache, error) {
	root, err := cachedir.Open(dir, "fetch", "sha256", "index", "partial", "locks")
	return cache{root}, err
}

// key is a URL's name in the cache. It does not show a password of the URL.
func key(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}

func (c cache) contentPath(digest string) string { return filepath.Join(c.root, "sha256", digest) }

// content is a complete file of the cache, which stays while it is held.
type content struct {
	path, digest string
	size         int64
	held         *lock
}

// take holds a file of the cache and checks all of its bytes; nil if it is missing. A file that has changed on disk is
// removed.
func (c cache) take(ctx context.Context, digest string) (_ *content, err error) {
	held, err := c.lock(ctx, "sha256-"+digest, syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	found := &content{path: c.contentPath(digest), digest: digest, held: held}
	defer func() {
		if err != nil || found == nil {
			err = errors.Join(err, held.Release())
		}
	}()
	f, err := os.Open(found.path)
	if errors.Is(err, fs.ErrNotExist) {
		found = nil
		return nil, nil //nolint:nilnil // missing is no error
	}
	if err != nil {
		return nil, err
	}
	got, size, err := sum(ctx, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if got != digest {
		path := found.path
		found = nil
		return nil, os.Remove(path)
	}
	found.size = size
	return found, held.Touch()
}

// keep moves a checked file to its final name, and holds it there.
func (c cache) keep(ctx context.Context, f *os.File, digest string, size int64) (_ *content, err error) {
	held, err := c.lock(ctx, "sha256-"+digest, syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, held.Release())
		}
	}()
	if err := errors.Join(f.Chmod(0o400), f.Sync()); err != nil {
		return nil, err
	}
	path := c.contentPath(digest)
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, err
	}
	if err := file.SyncFolder(file.Machine{}, filepath.Dir(path)); err != nil {
		return nil, err
	}
	return &content{path: path, digest: digest, size: size, held: held}, held.Touch()
}

// sum is the SHA-256 of a file.
func sum(ctx context.Context, f *os.File) (digest string, size int64, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(h, store.Reader(ctx, f))
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// remembered is the last known content of a URL.
type remembered struct {
	Version   int       `json:"version"`
	URL       string    `json:"url"` // printable
	Validator string    `json:"validator"`
	Digest    string    `json:"digest"`
	Size      int64     `json:"size"`
	At        time.Time `json:"at"`
}

func (c cache) indexPath(url string) string {
	return filepath.Join(c.root, "index", key(url)+".json")
}

func (c cache) remember(url string, r remembered) error {
	r.Version, r.URL, r.At = 1, store.Printable(url), time.Now().UTC().Truncate(time.Millisecond)
	return writeJSON(c.indexPath(url), r)
}

// recall reads the last known content of a URL; an unreadable record counts as none.
func (c cache) recall(url string) (remembered, bool) {
	var r remembered
	ok := readJSON(c.indexPath(url), &r)
	return r, ok && r.URL == store.Printable(url) && r.Validator != "" && store.IsDigest(r.Digest)
}

func readJSON(path string, into any) bool {
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, into) == nil
}

// writeJSON replaces a file: it writes a new one, syncs it and renames it.
func writeJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
