package hdfs

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // it is the sum that HDFS keeps of its checksums
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/muster-agent/muster/packages/fetch"
)

// writer writes a file on a connection of its own.
type writer struct {
	store *Store
	ctx   context.Context
	path  string

	link   *link
	file   *client.FileWriter
	stop   func() bool
	sum    *sums
	failed error
	closed bool
	unsure bool // an answer to the creation was lost: it may have been made
}

// create makes the file, and the folders above it where they are missing.
func (w *writer) create() error {
	l, err := w.store.cluster.take(w.ctx, w.store.cluster.files)
	if err != nil {
		return err
	}
	err = w.store.guarded(w.ctx, l, func(l *link) error {
		block, copies, err := w.store.cluster.forms(l)
		if err != nil {
			return err
		}
		w.sum = newSums(block)
		return w.make(l, copies, block)
	})
	if err != nil {
		w.unsure = w.unsure || transient(err)
		w.store.cluster.give(l, w.store.cluster.files)
		return err
	}
	w.link = l
	w.stop = context.AfterFunc(w.ctx, l.wires.close)
	return nil
}

// make makes the file. One that a try of ours has left, whose answer was lost, is in the way of the next, which has another
// name to the NameNode.
func (w *writer) make(l *link, copies int, block int64) (err error) {
	mode := 0o666 &^ w.store.cluster.conf.umask()
	w.file, err = l.CreateFile(w.path, copies, block, mode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = w.store.mkdirAll(l, path.Dir(w.path)); err == nil {
			w.file, err = l.CreateFile(w.path, copies, block, mode)
		}
	}
	if !w.unsure || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, lost := l.Client.Stat(w.path)
	if lost != nil || info.IsDir() || info.Size() > 0 {
		return errors.Join(err, lost)
	}
	if err := l.Client.Remove(w.path); err != nil {
		return err
	}
	w.file, err = l.CreateFile(w.path, copies, block, mode)
	return err
}

// Write hands bytes to the DataNodes. After an error nothing is written any more.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.failed != nil || w.closed {
		return 0, errors.Join(w.failed, closedError(w.closed))
	}
	for n < len(p) && err == nil {
		var sent int
		sent, err = w.write(p[n:min(n+mostAtOnce, len(p))])
		n += sent
	}
	if err != nil {
		w.failed = w.store.explain("write", w.path, err)
		return n, w.failed
	}
	return n, nil
}

func closedError(closed bool) error {
	if closed {
		return os.ErrClosed
	}
	return nil
}

// write waits for a NameNode that is away between two blocks; what has been sent is not sent again.
func (w *writer) write(p []byte) (n int, err error) {
	err = w.store.patiently(w.ctx, "write", w.path, func() error {
		w.link.wires.said()
		sent, err := w.file.Write(p[n:])
		w.sum.add(p[n : n+sent])
		n += sent
		if err == nil {
			return nil
		}
		return w.lost(meaning(err, w.link.wires.said()))
	})
	return n, err
}

// lost sorts what went wrong: only a NameNode's absence can be waited for. The pipeline of a block is not mended: its file
// is written anew, by who writes it.
func (w *writer) lost(err error) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	node, is := errors.AsType[*nodeError](err)
	_, none := errors.AsType[awayError](err)
	away := none || is && node.node == nameNode || errors.Is(err, ErrStandby) || errors.Is(err, ErrSafeMode)
	if away || !transient(err) && !errors.Is(err, ErrNoNodes) {
		return err
	}
	if (errors.Is(err, ErrNoNodes) || errors.Is(err, ErrLeftOut)) && w.store.cluster.bad.forget() { // those that were left out may be the only ones
		if transient(err) {
			return anew{err}
		}
		return anew{fmt.Errorf("%w: %w", fetch.ErrUnreachable, err)}
	}
	if transient(err) {
		w.store.cluster.probe(w.ctx, w.link.wires.pipeline())
		return anew{err}
	}
	return err
}

// anew is an error after which the file has to be written from its start: nothing here can mend it.
type anew struct{ error }

func (a anew) Unwrap() error { return a.error }

// Close completes the file, and compares what HDFS has of it with what was written. After an error the file is not what it
// should be, or not known to be.
func (w *writer) Close() error {
	if w.closed {
		return os.ErrClosed
	}
	w.closed = true
	defer w.release()
	if w.failed != nil {
		w.abort()
		return w.store.explain("close", w.path, &fetch.Error{Err: errors.New("it was not written whole")})
	}
	if err := w.store.patiently(w.ctx, "close", w.path, w.complete); err != nil {
		w.abort()
		return w.store.explain("close", w.path, err)
	}
	if err := w.store.patiently(w.ctx, "close", w.path, w.verify); err != nil {
		return w.store.explain("close", w.path, err)
	}
	return nil
}

// complete may be asked again where a NameNode was away, or waits for copies that are on their way.
func (w *writer) complete() error {
	w.link.wires.said()
	err := w.file.Close()
	if err == nil {
		return nil
	}
	if client.IsErrReplicating(err) {
		return fmt.Errorf("%w: its last block has not arrived everywhere", fetch.ErrUnreachable)
	}
	return w.lost(meaning(err, w.link.wires.said()))
}

// verify compares checksums.
func (w *writer) verify() error {
	if w.link.broken || w.link.wires.ctx.Err() != nil {
		if err := w.relink(); err != nil {
			return err
		}
	}
	var got []byte
	var size int64
	var unsummed error
	err := w.store.guarded(w.ctx, w.link, func(l *link) error {
		f, err := l.Client.Open(w.path)
		if err != nil {
			return err
		}
		if err := readable(w.path, f); err != nil {
			return errors.Join(err, f.Close())
		}
		if size = f.Stat().Size(); size > 0 {
			got, unsummed = f.Checksum()
		}
		return f.Close()
	})
	if err != nil {
		return err
	}
	if size != w.sum.size {
		return &fetch.Error{Err: fmt.Errorf("%w: HDFS has %d bytes of it, want %d", fetch.ErrCorrupt, size, w.sum.size), Hint: "try again"}
	}
	if size == 0 || unsummed == nil && bytes.Equal(got, w.sum.file()) {
		return nil
	}
	w.link.broken = w.link.broken || unsummed != nil // no DataNode told the sum of a block: what it holds will tell
	return w.readBack()
}

func (w *writer) relink() error {
	l, err := w.store.cluster.connect(w.ctx)
	if err != nil {
		return err
	}
	w.stop()
	w.link.close()
	w.link = l
	w.stop = context.AfterFunc(w.ctx, l.wires.close)
	return nil
}

// readBack compares the content itself, where the cluster's sum is made in another way than ours.
func (w *writer) readBack() error {
	r := &reader{store: w.store, ctx: w.ctx, path: w.path, free: true} // the writer's place is enough for both
	if err := r.open(); err != nil {
		return err
	}
	h := crc32.New(castagnoli)
	_, err := io.Copy(h, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if got := h.Sum32(); got != w.sum.whole {
		return &fetch.Error{Err: fmt.Errorf("%w: HDFS has CRC32C %08x of it, want %08x", fetch.ErrCorrupt, got, w.sum.whole), Hint: "try again"}
	}
	return nil
}

// abort cuts the connections first: else the library would complete what is half there.
func (w *writer) abort() {
	w.link.broken = true
	w.link.wires.close()
	_ = w.file.Close() // ends what it does beside us
}

func (w *writer) release() {
	w.stop()
	w.store.cluster.give(w.link, w.store.cluster.files)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums are what HDFS keeps of a file, made from what is written: of each 512 bytes a CRC32C, of a block's the MD5, of the
// blocks' the MD5 again, filled up with zeros (Hadoop: FileChecksumHelper).
type sums struct {
	block int64 // bytes
	size  int64
	whole uint32 // CRC32C of all

	chunk  uint32
	inPart int   // bytes of the chunk
	inFull int64 // bytes of the block
	blocks hash.Hash
	crcs   hash.Hash
	count  int
}

const chunkSize = 512

func newSums(block int64) *sums {
	return &sums{block: block, blocks: md5.New(), crcs: md5.New()} //nolint:gosec // see above
}

func (s *sums) add(p []byte) {
	s.whole = crc32.Update(s.whole, castagnoli, p)
	s.size += int64(len(p))
	for len(p) > 0 {
		n := min(int64(len(p)), int64(chunkSize-s.inPart), s.block-s.inFull)
		s.chunk = crc32.Update(s.chunk, castagnoli, p[:n])
		s.inPart += int(n)
		s.inFull += n
		if s.inPart == chunkSize || s.inFull == s.block {
			s.endChunk()
		}
		if s.inFull == s.block {
			s.endBlock()
		}
		p = p[n:]
	}
}

func (s *sums) endChunk() {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], s.chunk)
	s.crcs.Write(b[:])
	s.chunk, s.inPart = 0, 0
}

func (s *sums) endBlock() {
	s.blocks.Write(s.crcs.Sum(nil))
	s.crcs.Reset()
	s.inFull = 0
	s.count++
}

// file is the sum of all; nothing can be added after it.
func (s *sums) file() []byte {
	if s.inPart > 0 {
		s.endChunk()
	}
	if s.inFull > 0 {
		s.endBlock()
	}
	have, want := s.count*md5.Size, 2*md5.Size
	for want < have {
		want *= 2
	}
	s.blocks.Write(make([]byte, want-have))
	return s.blocks.Sum(nil)
}
