package packages

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/muster-agent/muster/shim/store"
)

// perRecord is what an entry of a zip's directory may take on average, in bytes; the directory is held in memory.
const perRecord = 320

// directory reads a zip's directory, of which not more is read than the number of files allows.
func (a *archive) directory(l Limits) (*zip.Reader, error) {
	left := int64(l.Files)*perRecord + 1<<20
	r, err := zip.NewReader(&boundedReaderAt{a, &left}, a.size)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		return nil, err
	case errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, &RefusedError{
			Reason: tornArchive, Got: fmt.Sprintf("it breaks off or is damaged (%v)", err),
			Want: "it whole: fetch or pack it again",
		}
	case err != nil:
		return nil, err
	}
	left = math.MaxInt64 // the files are bounded by the budget
	return r, nil
}

// boundedReaderAt ends when more is read than is left.
type boundedReaderAt struct {
	r    io.ReaderAt
	left *int64
}

func (b *boundedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if *b.left != math.MaxInt64 {
		if *b.left -= int64(len(p)); *b.left < 0 {
			return 0, refuse(tooManyFiles, "got a directory larger than the number of files allows",
				"fewer files: pack data as one file")
		}
	}
	return b.r.ReadAt(p, off)
}

// zipKind is what an entry is. The name's ending and the mode must not differ.
func zipKind(f *zip.File) (fs.FileMode, error) {
	kind := f.Mode().Type()
	switch {
	case f.Flags&1 != 0: // APPNOTE.TXT 4.4.4
		return 0, refuse(encrypted, "got an encrypted entry", "a zip without a password")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return 0, refuse(unknownMethod, fmt.Sprintf("got compression method %d", f.Method),
			"stored or deflated: pack it with zip")
	case kind == fs.ModeDir && f.UncompressedSize64 != 0:
		return 0, refuse(badKind, "got a folder with content", "files and folders: a name that ends with / is a folder")
	case kind != 0 && kind != fs.ModeDir && kind != fs.ModeSymlink:
		return 0, refuse(badKind, "got a "+KindName(kind), "files, folders and links")
	}
	return kind, nil
}

func (x *extractor) zip(ctx context.Context, a *archive) error {
	r, err := a.directory(x.tree.Limits)
	if err != nil {
		return err
	}
	for _, f := range r.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := x.zipEntry(ctx, f); err != nil {
			return at(f.Name, err)
		}
	}
	return nil
}

func (x *extractor) zipEntry(ctx context.Context, f *zip.File) (err error) {
	kind, err := zipKind(f)
	if err != nil {
		return err
	}
	if kind == fs.ModeDir {
		return x.folder(f.Name)
	}
	if err := onlyOnce(x.tree, f.Name); err != nil {
		return err
	}
	from, err := f.Open()
	if err != nil {
		return torn(err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if kind == fs.ModeSymlink {
		target, err := io.ReadAll(io.LimitReader(from, maxName+1))
		if err != nil {
			return wrongSize(f, err)
		}
		return x.link(f.Name, string(target))
	}
	return wrongSize(f, x.file(f.Name, f.Mode(), store.Reader(ctx, from)))
}

// onlyOnce: which of two files of one name counts, zip tools do not agree about.
func onlyOnce(t *tree, name string) error {
	clean, err := t.clean(name)
	if err != nil {
		return err
	}
	if kind, there := t.made[clean]; there && kind != fs.ModeDir {
		return refuse(fileTwice, "got a name twice", "each name once")
	}
	return nil
}

// wrongSize names a file that unpacks to another size than is stated.
func wrongSize(f *zip.File, err error) error {
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(otherSize, fmt.Sprintf("it does not unpack to the %d bytes that are stated",
			f.UncompressedSize64), "it whole: fetch or pack it again")
	}
	return torn(err)
}

// plainZip tells whether a zip can be read in place: files and folders alone. All is checked as if it were unpacked,
// but for what only reading shows; a reader is stopped at the stated size.
func plainZip(r *zip.Reader, size int64, l Limits) (bool, error) {
	t, b := newTree(l), &budget{Limits: l, packed: func() int64 { return size }}
	for _, f := range r.File {
		kind, err := zipKind(f)
		if err != nil {
			return false, at(f.Name, err)
		}
		if kind == fs.ModeSymlink {
			return false, nil
		}
		if kind == 0 {
			if err := onlyOnce(t, f.Name); err != nil {
				return false, at(f.Name, err)
			}
		}
		if _, _, err := t.add(f.Name, kind); err != nil {
			return false, at(f.Name, err)
		}
		if f.UncompressedSize64 > uint64(l.Bytes) {
			return false, at(f.Name, b.tooMany())
		}
		if err := b.write(int64(f.UncompressedSize64)); err != nil { //nolint:gosec // not more than Bytes
			return false, at(f.Name, err)
		}
	}
	return true, nil
}
