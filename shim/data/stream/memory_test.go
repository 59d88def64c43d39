package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"sync/atomic"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
)

// memory is a store of files that are there to be read. It counts what was read of them, and breaks when it is told.
type memory struct {
	store.Store

	files   map[string]string
	version int
	taken   atomic.Int64                      // bytes
	opened  atomic.Int64                      // times
	stalls  int64                             // so many opened files give nothing
	fail    func(path string, at int64) error // before the byte at is given; nil: never
}

func (m *memory) Open(ctx context.Context, path string, at store.Position) (*store.Content, error) {
	text, ok := m.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if m.opened.Add(1) <= m.stalls {
		return &store.Content{ReadCloser: mute{ctx}, Info: store.Info{Path: path}, Offset: at.Offset}, nil
	}
	version := strconv.Itoa(m.version)
	if at.Validator != "" && at.Validator != version {
		at.Offset = 0
	}
	at.Offset = min(at.Offset, int64(len(text)))
	return &store.Content{
		ReadCloser: io.NopCloser(&memoryReader{m, path, at.Offset, bytes.NewReader([]byte(text[at.Offset:]))}),
		Info:       store.Info{Path: path, Size: int64(len(text)), Validator: version}, Offset: at.Offset,
	}, nil
}

// mute gives nothing until it is called off.
type mute struct{ ctx context.Context } //nolint:containedctx // what it is for

func (s mute) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (s mute) Close() error { return nil }

type memoryReader struct {
	m    *memory
	path string
	at   int64
	r    io.Reader
}

func (r *memoryReader) Read(b []byte) (int, error) {
	if r.m.fail != nil {
		if err := r.m.fail(r.path, r.at); err != nil {
			return 0, err
		}
		b = b[:min(len(b), 7)] // so that it may fail anywhere
	}
	n, err := r.r.Read(b)
	r.at += int64(n)
	r.m.taken.Add(int64(n))
	return n, err
}

// listed are the files in the order of their names.
func (m *memory) listed(names ...string) []transfer.File {
	files := make([]transfer.File, len(names))
	for i, name := range names {
		files[i] = transfer.File{Store: m, Path: name, Size: int64(len(m.files[name]))}
	}
	return files
}

var errBroken = errors.New("connection broken")
