package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/shim/wait"
)

// blob is a layer's blob on disk, ready to be read from its start.
type blob struct {
	*os.File
	held *lock  // nil: no process writes it
	path string // to be removed once it is unpacked; empty: it stays
}

// Close leaves it to others as it is.
func (b *blob) Close() error {
	err := b.File.Close()
	if b.held != nil {
		err = errors.Join(err, b.held.Release())
	}
	return err
}

// done closes a blob that is unpacked.
func (b *blob) done() (err error) {
	if b.path != "" {
		err = os.Remove(b.path)
	}
	return errors.Join(err, b.Close())
}

// layer fetches a layer's blob, or the rest of it when an earlier try broke off, also one of another process. What is
// there in the end is checked as a whole.
func (r *registry) layer(ctx context.Context, d ispec.Descriptor) (_ *blob, err error) {
	name := strings.Replace(d.Digest.String(), ":", "-", 1)
	held, err := r.cache.lock(ctx, "blob-"+name, syscall.LOCK_EX, nil)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(r.cache.root, "partial", name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, held.Release())
	}
	if err := r.whole(ctx, f, d); err != nil {
		return nil, errors.Join(err, f.Close(), held.Release())
	}
	return &blob{File: f, held: held, path: path}, nil
}

// whole leaves f holding the blob, with its offset at the start.
func (r *registry) whole(ctx context.Context, f *os.File, d ispec.Descriptor) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	resumed := info.Size() > 0
	r.tally.fetched(info.Size())
	for {
		err := r.fill(ctx, f, d)
		if err == nil {
			err = checkFile(ctx, f, d)
		}
		if err == nil || !errors.Is(err, ErrDigest) {
			return err
		}
		if emptyErr := r.empty(f); emptyErr != nil || !resumed {
			return errors.Join(err, emptyErr)
		}
		resumed = false // what an earlier try left may be at fault: once more from the start
	}
}

// empty takes back a file of which no byte can be trusted.
func (r *registry) empty(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	r.tally.fetched(-size)
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// fill downloads until f has the blob's size. A try that brought bytes does not count against the number of tries.
func (r *registry) fill(ctx context.Context, f *os.File, d ispec.Descriptor) error {
	pause, failed := firstWait, 0
	for {
		have, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		if have == d.Size {
			return nil
		}
		if have > d.Size {
			return &digestError{What: "layer", Want: d.Digest, WantSize: d.Size, GotSize: have}
		}
		got, err := r.more(ctx, f, d, have)
		if err == nil {
			continue
		}
		if got > 0 {
			pause, failed = firstWait, 0
			continue
		}
		if failed++; failed == tries || !errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			return fmt.Errorf("layer %s: %w", d.Digest, err)
		}
		if wait.For(ctx, pause) != nil {
			return ctx.Err()
		}
		pause *= 2
	}
}

// more asks for what is missing, or for all where the registry knows no ranges (RFC 9110, 14). It returns how many
// bytes came; an error with bytes is a download that broke.
func (r *registry) more(ctx context.Context, f *os.File, d ispec.Descriptor, have int64) (int64, error) {
	header := http.Header{"Accept-Encoding": {"identity"}}
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := r.askOnce(ctx, http.MethodGet, "/blobs/"+d.Digest.String(), header,
		http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	goesOn := resp.StatusCode == http.StatusPartialContent &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have))
	if have > 0 && !goesOn {
		if err := r.empty(f); err != nil {
			return 0, err
		}
		have = 0
	}
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable || resp.StatusCode == http.StatusPartialContent &&
		!goesOn {
		return 0, fmt.Errorf("%w: %s does not know the rest of layer %s", ErrUnreachable, r.repo.RegistryStr(),
			d.Digest)
	}
	// a byte more than there should be tells a blob that is too long
	got, err := io.Copy(io.MultiWriter(f, meter{r.tally}), io.LimitReader(contextReader{ctx, resp.Body}, d.Size-have+1))
	var disk *os.PathError
	switch {
	case errors.As(err, &disk):
		return 0, err // ours: it is not the registry that failed
	case err != nil:
		return got, r.explain(ctx, err)
	case have+got < d.Size && got == 0:
		return 0, fmt.Errorf("registry %s: %w: layer %s ends after %d of %d bytes", r.repo.RegistryStr(),
			ErrUnreachable, d.Digest, have, d.Size)
	}
	return got, nil
}

// meter counts what passes.
type meter struct{ tally *tally }

func (m meter) Write(b []byte) (int, error) {
	m.tally.fetched(int64(len(b)))
	return len(b), nil
}

// contextReader ends a long read with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// checkFile compares a whole file with its descriptor, and leaves its offset at the start.
func checkFile(ctx context.Context, f *os.File, d ispec.Descriptor) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := d.Digest.Algorithm().Digester()
	n, err := io.Copy(h.Hash(), contextReader{ctx, f})
	if err != nil {
		return err
	}
	if n != d.Size {
		return &digestError{What: "layer", Want: d.Digest, WantSize: d.Size, GotSize: n}
	}
	if got := h.Digest(); got != d.Digest {
		return &digestError{What: "layer", Want: d.Digest, Got: got}
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}
