package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"syscall"
)

// Upload is a local file and the path that it gets in a store.
type Upload struct {
	From Folder
	Name string // in From
	To   string
}

// Folder is a local folder that files are read from: an *os.Root, or a folder with another user's rights.
type Folder interface {
	Name() string
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Stat(name string) (fs.FileInfo, error)
}

// Put brings a local file to a URL, whole or not at all: it is written beside it under another name, its bytes are
// checked against the digest (sha256 in hex; empty: none is known), and it takes its name then, also that of a file
// which is there. What breaks is tried again, and goes on where the store can. It returns the digest. A store that is
// for reading alone is errors.ErrUnsupported, with what would do.
func Put(ctx context.Context, url, file, digest string, stores Set) (string, error) {
	if digest != "" && !IsDigest(digest) {
		return "", Explain("put", url, fmt.Errorf("sha256: got %.80q, want 64 hex digits", digest))
	}
	store, to, err := stores.Open(ctx, url)
	if err != nil {
		return "", Explain("put", url, err)
	}
	got, err := put(ctx, store, to, file, digest)
	if err != nil {
		return "", Explain("put", url, err)
	}
	return got, nil
}

func put(ctx context.Context, store Store, to, file, digest string) (got string, err error) {
	from, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	info, err := from.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: got a %s, %w", file, KindOf(info.Mode()), ErrNotFile)
	}
	tmp := path.Join(path.Dir(to), "."+path.Base(to)+".new-"+rand.Text())
	u := upload{store: store, to: tmp, from: from, was: info}
	defer u.giveUp()
	got, err = u.persist(ctx)
	if err == nil && digest != "" && got != digest {
		err = fmt.Errorf("%s: %w", file, &DigestError{Want: digest, Got: got})
	}
	if err == nil {
		err = store.Rename(ctx, tmp, to)
	}
	if err != nil { // called off or not, what is half there goes
		u.giveUp()
		if gone := store.Remove(context.WithoutCancel(ctx), tmp); u.made && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return "", err
	}
	return got, nil
}

// upload is a file that is put, in as many tries as it takes.
type upload struct {
	store   Store
	to      string
	from    *os.File
	was     fs.FileInfo
	created bool           // or tried to
	made    bool           // something is there
	w       io.WriteCloser // of the last try; nil: there is none that could go on
}

// persist tries until it is whole, or what went wrong will not pass. A try that began further on than those before does
// not count against the number of tries, as with downloads. It gives the digest.
func (u *upload) persist(ctx context.Context) (digest string, err error) {
	best := int64(0)
	for failed := 0; ; {
		digest, at, err := u.try(ctx)
		if err == nil {
			return digest, nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if failed++; at > best {
			best, failed = at, 1
		}
		if !Transient(err) || failed > DefaultRetries {
			return "", err
		}
		if err := DefaultBackoff.Wait(ctx, failed); err != nil {
			return "", err
		}
	}
}

// try writes what the store does not have yet, of which it tells the first byte.
func (u *upload) try(ctx context.Context) (digest string, at int64, err error) {
	if at, err = u.begin(ctx); err != nil {
		return "", at, err
	}
	if _, err := u.from.Seek(0, io.SeekStart); err != nil {
		return "", at, err
	}
	h, from := sha256.New(), untilDone{ctx, u.from}
	if _, err := io.CopyN(h, from, at); err != nil {
		return "", at, err
	}
	if _, err := io.Copy(io.MultiWriter(u.w, h), from); err != nil {
		return "", at, err
	}
	if err := u.w.Close(); err != nil {
		return "", at, err
	}
	u.w = nil
	now, err := u.from.Stat()
	// what came first was not read again
	if err == nil && at > 0 && (now.Size() != u.was.Size() || !now.ModTime().Equal(u.was.ModTime())) {
		err = fmt.Errorf("%s changed while it was copied", u.from.Name())
	}
	return hex.EncodeToString(h.Sum(nil)), at, err
}

// begin goes on with the last try's file where the store can, else makes a new one.
func (u *upload) begin(ctx context.Context) (at int64, err error) {
	if at, err = Resume(ctx, u.w); err == nil {
		return at, nil
	}
	u.giveUp()
	if ctx.Err() != nil || Transient(err) {
		return 0, err
	}
	if u.created { // what the last try left is ours
		if err := u.store.Remove(ctx, u.to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	u.created = true
	u.w, err = u.store.Create(ctx, u.to)
	u.made = u.made || err == nil
	return 0, err
}

// giveUp ends a file that did not become whole.
func (u *upload) giveUp() {
	if u.w != nil {
		_ = u.w.Close() // it only says that it is not whole
		u.w = nil
	}
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// IsDigest tells whether a text is a sha256 in hex.
func IsDigest(text string) bool { return digestForm.MatchString(text) }

// KindOf names what is not the file that was wanted.
func KindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode.IsRegular():
		return "file"
	}
	return "device, pipe or socket"
}
