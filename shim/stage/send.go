package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"github.com/muster-agent/muster/packages/fetch"
)

// Parcel is a local file and the path that it gets in a store.
type Parcel struct {
	From *os.Root
	Name string // in From
	To   string
}

// Send copies files into a store. The first that fails calls the others off. What is half there stays: a caller sends below
// a folder that is not anybody's yet, and removes that.
func (t Transfer) Send(ctx context.Context, store Store, parcels []Parcel) error {
	return each(ctx, len(parcels), t.parallel(), func(ctx context.Context, i int) error {
		p := parcels[i]
		if err := send(ctx, store, p); err != nil {
			return fmt.Errorf("copy %s to %s: %w", path.Join(p.From.Name(), p.Name), p.To, explain(err, p.To))
		}
		return nil
	})
}

func send(ctx context.Context, store Store, p Parcel) (err error) {
	// a pipe that has taken the file's place would wait for somebody to write to it
	f, err := p.From.OpenFile(p.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", p.Name, fetch.ErrNotFile)
	}
	w, err := store.Create(ctx, p.To)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{w}, heedful{ctx, f}, make([]byte, copyBuffer))
	if err = errors.Join(err, w.Close()); err == nil && n != info.Size() {
		err = fmt.Errorf("%s changed while it was copied: %w", p.Name, &SizeError{info.Size(), n})
	}
	return err
}

// heedful ends a long read with its context.
type heedful struct {
	ctx context.Context
	r   io.Reader
}

func (h heedful) Read(b []byte) (int, error) {
	if h.ctx.Err() != nil {
		return 0, context.Cause(h.ctx)
	}
	return h.r.Read(b)
}
