package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// Send copies files into a store. What breaks is written anew. The first that fails for good calls the others off. What is
// half there stays: a caller sends below a folder that is not anybody's yet, and removes that.
func (t Transfer) Send(ctx context.Context, store Store, parcels []Parcel) error {
	return t.run(ctx, len(parcels), func(ctx context.Context, p *progress, i int) error {
		one := parcels[i]
		if err := send(ctx, p, store, one); err != nil {
			if _, told := errors.AsType[*fetch.Error](err); told { // it names the place, and what would do
				return fmt.Errorf("copy %s: %w", one.Name, err)
			}
			return fmt.Errorf("copy %s to %s: %w", path.Join(one.From.Name(), one.Name), one.To, explain(err, one.To))
		}
		return nil
	})
}

func send(ctx context.Context, p *progress, store Store, one Parcel) (err error) {
	// a pipe that has taken the file's place would wait for somebody to write to it
	f, err := one.From.OpenFile(one.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", one.Name, fetch.ErrNotFile)
	}
	first := true
	return p.persist(ctx, path.Join(one.From.Name(), one.Name), func(ctx context.Context, a *attempt) (int64, error) {
		if !first { // what the last try left is ours
			if err := absent(store.Remove(ctx, one.To)); err != nil {
				return 0, err
			}
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return 0, err
			}
		}
		first = false
		return 0, whole(ctx, a, store, one, f, info) // from its start each time: none gets further than another
	})
}

// whole writes a file from its start to its end. The store compares what it has with what it was given.
func whole(ctx context.Context, a *attempt, store Store, one Parcel, f *os.File, was fs.FileInfo) error {
	w, err := store.Create(ctx, one.To)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{sending{w, a}}, heedful{ctx, f}, make([]byte, copyBuffer))
	if err != nil {
		_ = w.Close() // it only says that the file is not whole
		return err
	}
	if err := a.while(w.Close); err != nil {
		return err
	}
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if n != was.Size() || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
		return fmt.Errorf("%s changed while it was copied: %w", one.Name, &SizeError{was.Size(), n})
	}
	return nil
}

// sending counts what a store has taken.
type sending struct {
	w io.Writer
	a *attempt
}

func (s sending) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.a.moved(n)
	return n, err
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
