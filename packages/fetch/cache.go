package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"
)

// cache is the folder `fetch` of the cache.
type cache struct{ root string }

// openCache makes the folders. The cache holds what will be run, so it must be the caller's own.
func openCache(dir string) (cache, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return cache{}, fmt.Errorf("open cache: %w", err)
	}
	c := cache{root: filepath.Join(abs, "fetch")}
	for _, sub := range []string{"sha256", "index", "partial", "locks"} {
		if err := os.MkdirAll(filepath.Join(c.root, sub), 0o700); err != nil {
			return cache{}, fmt.Errorf("open cache: %w", err)
		}
	}
	info, err := os.Lstat(c.root)
	if err != nil {
		return cache{}, fmt.Errorf("open cache: %w", err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() { //nolint:forcetypeassert // os on Linux
		return cache{}, fmt.Errorf("open cache %s: owner: got uid %d, want %d: it could change what runs; name another by XDG_CACHE_HOME", c.root, owner, os.Geteuid())
	}
	if err := os.Chmod(c.root, 0o700); err != nil {
		return cache{}, fmt.Errorf("open cache: %w", err)
	}
	if err := notOthers(filepath.Dir(c.root)); err != nil {
		return cache{}, fmt.Errorf("open cache %s: %w: it could be put in another's place; name another by XDG_CACHE_HOME", c.root, err)
	}
	return c, nil
}

// unmapped is how a user namespace shows an owner that it has no number for, the host's root among them (user_namespaces(7)).
const unmapped = 65534

// inUserNamespace: numbers of users mean something else here than on the machine, whose own namespace maps each to itself.
func inUserNamespace() bool {
	numbers, err := user.CurrentProcessUIDMap()
	own := len(numbers) == 1 && numbers[0] == user.IDMap{ID: 0, ParentID: 0, Count: math.MaxUint32}
	return err == nil && !own // a kernel without the file has no user namespaces
}

// notOthers refuses a folder of which somebody else than root and the caller could rename what is in it, in it or above
// it. Folders that everybody may write to are fine when only owners may rename in them, as in /tmp.
func notOthers(dir string) error {
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for ; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Stat(at, &st); err != nil {
			return &fs.PathError{Op: "stat", Path: at, Err: err}
		}
		if st.Uid != 0 && int(st.Uid) != os.Geteuid() && (st.Uid != unmapped || !inUserNamespace()) {
			return fmt.Errorf("owner of %s: got uid %d, want %d or 0", at, st.Uid, os.Geteuid())
		}
		if st.Mode&unix.S_IWOTH != 0 && st.Mode&unix.S_ISVTX == 0 {
			return fmt.Errorf("mode of %s: got %#o, want one by which others may not write there", at, st.Mode&0o7777)
		}
		if at == "/" {
			return nil
		}
	}
}

// key names what belongs to a URL. A password in it does not show.
func key(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (c cache) contentPath(digest string) string { return filepath.Join(c.root, "sha256", digest) }

// content is a whole file of the cache, which stays while it is held.
type content struct {
	path, digest string
	size         int64
	held         *lock
}

// take gives a file of the cache, read again to its last byte; nil when it is not there. One that has changed on the
// disk is removed.
func (c cache) take(ctx context.Context, digest string) (_ *content, err error) {
	held, err := c.lock(ctx, "sha256-"+digest, syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	found := &content{path: c.contentPath(digest), digest: digest, held: held}
	defer func() {
		if err != nil || found == nil {
			err = errors.Join(err, held.release())
		}
	}()
	f, err := os.Open(found.path)
	if errors.Is(err, fs.ErrNotExist) {
		found = nil
		return nil, nil //nolint:nilnil // not there is an answer
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
	return found, held.touch()
}

// keep moves a file that has been checked to its place, and holds it there.
func (c cache) keep(ctx context.Context, f *os.File, digest string, size int64) (_ *content, err error) {
	held, err := c.lock(ctx, "sha256-"+digest, syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, held.release())
		}
	}()
	if err := errors.Join(f.Chmod(0o400), f.Sync()); err != nil {
		return nil, err
	}
	path := c.contentPath(digest)
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return &content{path: path, digest: digest, size: size, held: held}, held.touch()
}

// sum reads a file from its start.
func sum(ctx context.Context, f *os.File) (digest string, size int64, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(h, contextReader{ctx, f})
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// remembered is what a URL was last seen to hold.
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
	r.Version, r.URL, r.At = 1, Printable(url), time.Now().UTC().Truncate(time.Millisecond)
	return writeJSON(c.indexPath(url), r)
}

// recall gives what is remembered of a URL. What cannot be read is not remembered.
func (c cache) recall(url string) (remembered, bool) {
	var r remembered
	ok := readJSON(c.indexPath(url), &r)
	return r, ok && r.URL == Printable(url) && r.Validator != "" && digestForm.MatchString(r.Digest)
}

func readJSON(path string, into any) bool {
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, into) == nil
}

// writeJSON puts a file in place whole: beside it first, to disk, then renamed.
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
