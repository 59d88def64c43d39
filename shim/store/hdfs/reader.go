package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/muster-agent/muster/shim/store"
)

// What is read at once.
const (
	// portion is less than a checksum's chunk of 512 bytes: only then does the library hold back bytes that do not
	// match. It reads more at a time, and returns it, checked or not.
	portion = 511
	// mostAtOnce is how much one Read returns, so that a watcher notices each packet.
	mostAtOnce = 64 << 10
)

// mostReads is how often a read is tried again that brings nothing further.
const mostReads = 5

// reader reads a file on a connection of its own. Where all DataNodes of a block have failed it is opened again.
type reader struct {
	store *Store
	ctx   context.Context
	path  string
	info  store.Info

	link   *link
	file   *client.FileReader
	stop   func() bool
	at     int64
	failed error
	closed bool
	free   bool // it counts with another that is open
}

// place counts it among the open files.
func (r *reader) place() chan struct{} {
	if r.free {
		return nil
	}
	return r.store.cluster.files
}

// open opens the file where none is, at the start.
func (r *reader) open() error {
	l, err := r.store.cluster.take(r.ctx, r.place())
	if err != nil {
		return err
	}
	var f *client.FileReader
	err = r.store.guarded(r.ctx, l, func(l *link) (err error) {
		f, err = l.Client.Open(r.path)
		return err
	})
	if err == nil {
		err = readable(f)
	}
	if err != nil {
		r.store.cluster.give(l, r.place())
		return err
	}
	r.link, r.file, r.info = l, f, describe(r.path, f.Stat())
	r.stop = context.AfterFunc(r.ctx, l.wires.close)
	return nil
}

// readable refuses what the library would read wrongly.
func readable(f *client.FileReader) error {
	info := f.Stat()
	if info.IsDir() {
		return &store.Error{Err: fmt.Errorf("got a folder, %w", store.ErrNotFile)}
	}
	status, _ := info.Sys().(*client.FileStatus)
	return plainBlocks(status)
}

// plainBlocks refuses files whose blocks hold something else than their bytes. Of a policy that comes with Hadoop a
// NameNode tells the number alone, not the name.
func plainBlocks(status *client.FileStatus) error {
	switch {
	case status.GetFileEncryptionInfo() != nil:
		return notPlain("in an encrypted folder")
	case status.GetEcPolicy() != nil:
		return notPlain("erasure coded")
	}
	return nil
}

func (r *reader) seek(at int64) error {
	r.at = at
	_, err := r.file.Seek(at, io.SeekStart)
	return err
}

// Read gives bytes that match their checksums.
func (r *reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, os.ErrClosed
	}
	if r.failed != nil || len(p) == 0 {
		return 0, r.failed
	}
	n, err := r.patiently(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = r.store.explain("read", r.path, err)
		err = r.failed
	}
	return n, err
}

// patiently reads, and again where what went wrong may pass.
func (r *reader) patiently(p []byte) (int, error) {
	for failed := 0; ; failed++ {
		if r.ctx.Err() != nil { // data on its way may arrive before the connections are closed
			return 0, context.Cause(r.ctx)
		}
		n, err := r.read(p)
		if n > 0 || err == nil || errors.Is(err, io.EOF) {
			return n, err
		}
		if r.ctx.Err() != nil {
			return 0, context.Cause(r.ctx)
		}
		if !store.Transient(err) || failed >= mostReads {
			return 0, err
		}
		if err := waits.Wait(r.ctx, failed); err != nil {
			return 0, err
		}
		if err := r.again(); err != nil {
			return 0, err
		}
	}
}

func (r *reader) read(p []byte) (n int, err error) {
	p = p[:min(len(p), mostAtOnce)]
	r.link.wires.said()
	for n < len(p) && err == nil {
		var got int
		got, err = r.file.Read(p[n:min(n+portion, len(p))])
		n += got
	}
	r.at += int64(n)
	switch {
	case n > 0: // the library returns the error again, or continues
		return n, nil
	case errors.Is(err, io.EOF):
		if r.at != r.info.Size {
			return 0, fmt.Errorf("%w: it ends at byte %d, want %d", store.ErrUnreachable, r.at, r.info.Size)
		}
		return 0, io.EOF
	case err != nil:
		r.link.broken = true
	}
	return n, meaning(err, r.link.wires.said())
}

// again opens the file once more, where it has been read to. It must be the same.
func (r *reader) again() error {
	was := r.info
	r.release()
	if err := r.store.patiently(r.ctx, "open", r.path, r.open); err != nil {
		return err
	}
	if r.info.Validator != was.Validator {
		return &store.Error{Err: errors.New("it was changed while it was read"), Hint: "wait until it is written"}
	}
	return r.seek(r.at)
}

func (r *reader) release() {
	if r.link == nil {
		return
	}
	r.stop()
	_ = r.file.Close() // nothing was written
	r.store.cluster.give(r.link, r.place())
	r.link, r.file = nil, nil
}

// Close ends the reading.
func (r *reader) Close() error {
	r.closed = true
	r.release()
	return nil
}
