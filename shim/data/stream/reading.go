package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
)

// reading reads a file from an offset on, and resumes after a broken connection.
type reading struct {
	ctx     context.Context //nolint:containedctx // Read takes none; it ends with the file
	file    transfer.File
	again   transfer.Again
	at      int64 // of the next byte
	version string
	failed  int // failures without progress
	content io.ReadCloser
	within  context.Context //nolint:containedctx // of the current content
	end     context.CancelCauseFunc
	since   atomic.Int64 // begin of the current read, in nanoseconds of Unix; 0: none
}

// read opens a file at an offset.
func read(ctx context.Context, f transfer.File, at int64, again transfer.Again) (*reading, error) {
	r := &reading{ctx: ctx, file: f, at: at, again: again}
	err := r.open()
	for err != nil && r.retry(err) {
		err = r.open()
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *reading) open() (err error) {
	within, end := context.WithCancelCause(r.ctx)
	defer func() {
		r.since.Store(0)
		if err != nil {
			err = r.stalled(within, err)
			end(nil)
		}
	}()
	r.since.Store(time.Now().UnixNano())
	go r.watch(within, end)
	content, err := r.file.Store.Open(within, r.file.Path, store.Position{Offset: r.at, Validator: r.version})
	if err != nil {
		return err
	}
	if content.Offset > r.at || content.Offset < r.at && r.version != "" {
		return errors.Join(fmt.Errorf("%s: it has changed while it was read", r.file.Shown()), content.Close())
	}
	if _, err := io.CopyN(io.Discard, content, r.at-content.Offset); err != nil && !errors.Is(err, io.EOF) {
		return errors.Join(err, content.Close())
	}
	r.content, r.within, r.end, r.version = content, within, end, content.Info.Validator
	return nil
}

// watch cancels a read without data for the time that a copy waits. The time that the process takes for its records
// does not count.
func (r *reading) watch(within context.Context, end context.CancelCauseFunc) {
	ticker := time.NewTicker(transfer.Stall / 4)
	defer ticker.Stop()
	for {
		select {
		case <-within.Done():
			return
		case now := <-ticker.C:
			if since := r.since.Load(); since != 0 && now.UnixNano()-since >= int64(transfer.Stall) {
				end(fmt.Errorf("%w: nothing came for %s", store.ErrUnreachable, transfer.Stall))
			}
		}
	}
}

// stalled replaces the error of a cancelled read by the watch's own.
func (r *reading) stalled(within context.Context, err error) error {
	if cause := context.Cause(within); cause != nil && r.ctx.Err() == nil {
		return cause
	}
	return err
}

// retry tells whether another try can help. A missing file stays missing.
func (r *reading) retry(err error) bool {
	r.failed++
	return r.ctx.Err() == nil && r.again != nil && r.again(r.ctx, r.file.Shown(), r.failed, err)
}

// Read returns io.EOF only at the listed end of the file: a file that has become shorter is an error.
func (r *reading) Read(b []byte) (int, error) {
	for {
		n, err := r.once(b)
		if n > 0 {
			r.failed = 0
			return n, nil
		}
		if err == nil || errors.Is(err, io.EOF) {
			return 0, err
		}
		if !r.retry(err) {
			if cause := context.Cause(r.ctx); cause != nil {
				return 0, cause
			}
			return 0, err
		}
	}
}

func (r *reading) once(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if r.content == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	r.since.Store(time.Now().UnixNano())
	n, err := r.content.Read(b)
	r.since.Store(0)
	r.at += int64(n)
	if errors.Is(err, io.EOF) && n == 0 && r.at < r.file.Size {
		err = &transfer.SizeError{Want: r.file.Size, Got: r.at}
	}
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		err = r.stalled(r.within, err)
		err = errors.Join(err, r.Close())
	}
	return n, err
}

// Close closes the file.
func (r *reading) Close() error {
	if r.content == nil {
		return nil
	}
	err := r.content.Close()
	r.end(nil)
	r.content = nil
	return err
}
