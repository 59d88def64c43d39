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
	"time"

	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/packages/cachedir"
)

// cache is the folder `image` of the cache.
type cache struct{ root string }

// openCache makes the folders. The cache holds what a container will run, so it must be the caller's own.
func openCache(dir string) (cache, error) {
	root, err := cachedir.Open(dir, "image", "blobs", "refs", "partial", "layers", "locks")
	return cache{root}, err
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

// write replaces a file as a whole: written beside it, synced, then renamed.
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
		return &digestError{What: what, Want: want, Got: got}
	}
	return nil
}
