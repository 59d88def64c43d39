package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

// cache is the folder `image` of the cache.
type cache struct{ root string }

// openCache makes the folders. The cache holds what a container will run, so it must be the caller's own.
func openCache(dir string) (cache, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return cache{}, fmt.Errorf("open cache: %w", err)
	}
	c := cache{root: filepath.Join(abs, "image")}
	for _, sub := range []string{"blobs", "refs", "partial", "layers", "locks"} {
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

func (c cache) blobPath(d digest.Digest) string {
	return filepath.Join(c.root, "blobs", d.Algorithm().String(), d.Encoded())
}

// blob reads a small blob; fs.ErrNotExist when it is not there whole.
func (c cache) blob(what string, d digest.Digest) ([]byte, error) {
	text, err := os.ReadFile(c.blobPath(d))
	if err != nil {
		return nil, err
	}
	if checkBytes(what, d, text) != nil {
		return nil, fmt.Errorf("blob %s: changed on disk: %w", d, fs.ErrNotExist) // to be fetched again
	}
	return text, nil
}

// keep writes a small blob that has been checked.
func (c cache) keep(d digest.Digest, text []byte) error { return write(c.blobPath(d), text) }

// remembered is what a name was last seen to mean.
type remembered struct {
	Ref        string           `json:"ref"`
	Descriptor ispec.Descriptor `json:"descriptor"`
	At         time.Time        `json:"at"`
}

func (c cache) refPath(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(c.root, "refs", hex.EncodeToString(sum[:])+".json")
}

func (c cache) remember(name string, d ispec.Descriptor) error {
	text, err := json.Marshal(remembered{Ref: name, Descriptor: d, At: time.Now().UTC().Truncate(time.Millisecond)})
	if err != nil {
		return err
	}
	return write(c.refPath(name), text)
}

func (c cache) recall(name string) (remembered, error) {
	text, err := os.ReadFile(c.refPath(name))
	if err != nil {
		return remembered{}, err
	}
	var r remembered
	if err := json.Unmarshal(text, &r); err != nil {
		return remembered{}, err
	}
	if r.Ref != name {
		return remembered{}, fmt.Errorf("ref %s: got one of %s", name, r.Ref)
	}
	return r, r.Descriptor.Digest.Validate()
}

// write puts a file in place whole: beside it first, to disk, then renamed.
func write(path string, text []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-")
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

// checkBytes compares content with its digest.
func checkBytes(what string, want digest.Digest, text []byte) error {
	if err := want.Validate(); err != nil {
		return refuse("%s: digest %q: %v", what, want, err)
	}
	if got := want.Algorithm().FromBytes(text); got != want {
		return &DigestError{What: what, Want: want, Got: got}
	}
	return nil
}
