package fetch

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"
)

// Put brings a local file to a URL, whole or not at all: it is written beside it under another name, its bytes are
// checked against the digest (sha256 in hex; empty: none is known), and it takes its name then, also that of a file
// which is there. It returns the digest. A store that is for reading alone is errors.ErrUnsupported, with what would do.
func Put(ctx context.Context, url, file, digest string, o Options) (string, error) {
	if digest != "" && !digestForm.MatchString(digest) {
		return "", explain("put", url, fmt.Errorf("sha256: got %.80q, want 64 hex digits", digest))
	}
	store, to, err := Open(ctx, url, o)
	if err != nil {
		return "", explain("put", url, err)
	}
	got, err := put(ctx, store, to, file, digest)
	if err != nil {
		return "", explain("put", url, err)
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
		return "", fmt.Errorf("%s: got a %s, %w", file, kindOf(info.Mode()), ErrNotFile)
	}
	tmp := path.Join(path.Dir(to), "."+path.Base(to)+".new-"+rand.Text())
	w, err := store.Create(ctx, tmp)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(w, h), contextReader{ctx, from})
	got = hex.EncodeToString(h.Sum(nil))
	if err = errors.Join(err, w.Close()); err == nil && digest != "" && got != digest {
		err = fmt.Errorf("%s: %w", file, &DigestError{Want: digest, Got: got})
	}
	if err == nil {
		err = store.Rename(ctx, tmp, to)
	}
	if err != nil { // called off or not, what is half there goes
		return "", errors.Join(err, store.Remove(context.WithoutCancel(ctx), tmp))
	}
	return got, nil
}
