package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/muster-agent/muster/shim/store"
)

// Send copies files into a store. A broken copy resumes if the store can, else it starts again. The first error that a
// retry does not help cancels the others. Incomplete files stay: a caller sends below a temporary folder of its own,
// and removes it.
func (t Transfer) Send(ctx context.Context, to store.Store, uploads []store.Upload) error {
	return t.SendEach(ctx, to, uploads, func(ctx context.Context, _ int, send func(context.Context) error) error {
		return send(ctx)
	})
}

// SendEach is Send with a look at each file before and after: each is called for every file by its index, and may send
// the file several times.
func (t Transfer) SendEach(
	ctx context.Context, to store.Store, uploads []store.Upload,
	each func(ctx context.Context, i int, send func(context.Context) error) error,
) error {
	return t.run(ctx, len(uploads), func(ctx context.Context, p *progress, i int) error {
		return each(ctx, i, func(ctx context.Context) error { return p.send(ctx, to, uploads[i]) })
	})
}

// send copies one file; its error names the file.
func (p *progress) send(ctx context.Context, to store.Store, one store.Upload) error {
	err := send(ctx, p, to, one)
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*store.Error](err); told { // it names the path and the remedy
		return fmt.Errorf("copy %s: %w", one.Name, err)
	}
	return fmt.Errorf("copy %s to %s: %w", path.Join(one.From.Name(), one.Name), one.To, Explain(err, one.To))
}

func send(ctx context.Context, p *progress, to store.Store, one store.Upload) (err error) {
	// a pipe that has replaced the file would wait for a writer
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
		return fmt.Errorf("%s: %w", one.Name, store.ErrNotFile)
	}
	o := outgoing{store: to, to: one.To, file: f, was: info}
	defer o.giveUp()
	return p.persist(ctx, path.Join(one.From.Name(), one.Name), o.more)
}

// outgoing is a file on its way into a store, in as many tries as it takes.
type outgoing struct {
	store   store.Store
	to      string
	file    *os.File
	was     fs.FileInfo
	created bool
	w       io.WriteCloser // of the last try; nil: it cannot be resumed
}

// more writes the bytes that the store does not have yet, and closes the file: the store compares the bytes with what
// it was given. far is how many it had before.
func (o *outgoing) more(ctx context.Context, a *attempt) (far int64, err error) {
	at, err := o.begin(ctx)
	if err != nil {
		return at, err
	}
	if _, err := o.file.Seek(at, io.SeekStart); err != nil {
		return at, err
	}
	n, err := io.CopyBuffer(onlyWriter{sending{o.w, a}}, store.Reader(ctx, o.file), make([]byte, copyBuffer))
	if err != nil {
		return at, err
	}
	if err := a.while(o.w.Close); err != nil {
		return at, err
	}
	o.w = nil
	now, err := o.file.Stat()
	if err != nil {
		return at, err
	}
	if at+n != o.was.Size() || now.Size() != o.was.Size() || !now.ModTime().Equal(o.was.ModTime()) {
		return at, fmt.Errorf("%s changed while it was copied: %w", o.was.Name(), &SizeError{o.was.Size(), at + n})
	}
	return at, nil
}

// begin resumes the last try's file if the store can, else makes a new one.
func (o *outgoing) begin(ctx context.Context) (at int64, err error) {
	if at, err = store.Resume(ctx, o.w); err == nil {
		return at, nil
	}
	o.giveUp()
	if ctx.Err() != nil || store.Transient(err) {
		return 0, err
	}
	if o.created { // the remains of the last try are ours
		if err := o.store.Remove(ctx, o.to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	o.created = true
	o.w, err = o.store.Create(ctx, o.to)
	return 0, err
}

// giveUp closes a file that did not become complete.
func (o *outgoing) giveUp() {
	if o.w != nil {
		_ = o.w.Close() // its error only says that the file is incomplete
		o.w = nil
	}
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
