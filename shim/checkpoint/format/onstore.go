package format

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// OnStore is a folder of a store as Look takes it: its files are listed, and of each no more is read than tells whether
// it is whole. A file's places are read in pieces, of which the last is kept.
func OnStore(ctx context.Context, store store.Store, top string) fs.FS {
	return storeFolder{ctx, store, top}
}

type storeFolder struct {
	ctx   context.Context //nolint:containedctx // fs.FS has no other way to be called off
	store store.Store
	top   string
}

func (s storeFolder) path(op, name string) (string, error) {
	switch {
	case !fs.ValidPath(name):
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	case name == ".":
		return s.top, nil
	}
	return s.top + "/" + name, nil
}

func (s storeFolder) Stat(name string) (fs.FileInfo, error) {
	at, err := s.path("stat", name)
	if err != nil {
		return nil, err
	}
	info, err := s.store.Stat(s.ctx, at)
	return storeInfo{info}, err
}

func (s storeFolder) ReadDir(name string) ([]fs.DirEntry, error) {
	at, err := s.path("list", name)
	if err != nil {
		return nil, err
	}
	found, err := s.store.List(s.ctx, at)
	if err != nil {
		return nil, err
	}
	all := make([]fs.DirEntry, len(found))
	for i, one := range found {
		all[i] = fs.FileInfoToDirEntry(storeInfo{one})
	}
	return all, nil
}

// Open opens a file; folders are listed by ReadDir.
func (s storeFolder) Open(name string) (fs.File, error) {
	info, err := s.Stat(name)
	if err != nil {
		return nil, err
	}
	at, err := s.path("open", name)
	return &storeFile{storeFolder: s, at: at, info: info}, err
}

type storeInfo struct{ store.Info }

func (i storeInfo) Name() string       { return path.Base(i.Path) }
func (i storeInfo) Size() int64        { return i.Info.Size }
func (i storeInfo) ModTime() time.Time { return i.Info.ModTime }
func (i storeInfo) IsDir() bool        { return i.Dir }
func (i storeInfo) Sys() any           { return nil }
func (i storeInfo) Mode() fs.FileMode {
	if i.Dir {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// piece is how much of a file is read at once, in bytes.
const piece = 256 << 10

type storeFile struct {
	storeFolder
	at     string
	info   fs.FileInfo
	read   int64 // by Read
	begin  int64 // of what is kept
	buffer []byte
}

func (f *storeFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *storeFile) Close() error               { return nil }

func (f *storeFile) Read(b []byte) (int, error) {
	n, err := f.ReadAt(b[:min(len(b), piece)], f.read)
	f.read += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *storeFile) ReadAt(b []byte, offset int64) (int, error) {
	done := 0
	for done < len(b) {
		at := offset + int64(done)
		if at >= f.info.Size() {
			return done, io.EOF
		}
		if at < f.begin || at >= f.begin+int64(len(f.buffer)) {
			if err := f.fill(at, int64(max(piece, len(b)-done))); err != nil {
				return done, err
			}
		}
		done += copy(b[done:], f.buffer[at-f.begin:])
	}
	return done, nil
}

// fill reads from a position on. What is read near the end of a file is its whole end: that is where its directory is.
func (f *storeFile) fill(at, n int64) (err error) {
	if size := f.info.Size(); at > size-n {
		at = max(0, min(at, size-n))
	}
	c, err := f.store.Open(f.ctx, f.at, store.Position{Offset: at})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := io.CopyN(io.Discard, c, at-c.Offset); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(c, n))
	if err == nil && len(text) == 0 {
		err = io.ErrUnexpectedEOF
	}
	f.begin, f.buffer = at, text
	return err
}
