package format

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Bounds of what is read of a file to know whether it is whole.
const (
	MostFiles    = 100_000
	mostMetadata = 64 << 20 // bytes of a description: an index, a pickle
	headBytes    = 16
)

// content is an opened file.
type content struct {
	io.ReaderAt
	size  int64
	close func() error
}

// open opens a file whose places can be read in any order.
func open(dir fs.FS, name string) (content, error) {
	f, err := dir.Open(name)
	if err != nil {
		return content{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", name)
	}
	at, ok := f.(io.ReaderAt)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w", name, errors.ErrUnsupported)
	}
	if err != nil {
		return content{}, errors.Join(err, f.Close())
	}
	return content{at, info.Size(), f.Close}, nil
}

// with opens a file and has something read it.
func with(dir fs.FS, name string, read func(content) error) error {
	f, err := open(dir, name)
	if err != nil {
		return err
	}
	err = errors.Join(read(f), f.close())
	if err != nil {
		return fmt.Errorf("%s: %w", path.Base(name), err)
	}
	return nil
}

// bytesAt reads n bytes.
func (c content) bytesAt(offset, n int64) ([]byte, error) {
	if offset < 0 || n < 0 || n > mostMetadata || offset > c.size-n {
		return nil, errCut
	}
	b := make([]byte, n)
	read, err := c.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		if err = nil; int64(read) < n { // it was made shorter since it was opened
			err = errCut
		}
	}
	return b, err
}

// errCut is a file that ends before its content does.
var errCut = errors.New("it is cut off")

// known looks into a match of a pattern as far as its form is known: zip (PyTorch, NumPy, Keras), HDF5 (Keras),
// LightGBM's text, and the framework's own forms.
func known(dir fs.FS, name string, folder bool, files []File, framework string) error {
	if folder && slices.ContainsFunc(files, func(f File) bool {
		return path.Base(f.Name) == ".metadata" || path.Ext(f.Name) == ".distcp"
	}) {
		return distributed(dir, name, files)
	}
	for _, f := range files {
		if folder && f.Size == 0 {
			continue // beside others that are not: a marker
		}
		if f.Name != name && !folder {
			continue // the marker of a file
		}
		if err := with(dir, f.Name, formOf(path.Ext(f.Name), framework)); err != nil {
			return err
		}
	}
	return nil
}

// formOf is what a file has to be by its suffix and its job's framework; of any other its first bytes tell.
func formOf(suffix, framework string) func(content) error {
	switch suffix {
	case ".pt", ".pth":
		return wholeTorch
	case ".npz", ".keras", ".zip":
		return wholeZip
	case ".h5", ".hdf5":
		return wholeHDF
	}
	switch {
	case framework == "mxnet" && suffix == ".params":
		return wholeParams
	case framework == "xgboost" && (suffix == ".json" || suffix == ".ubj"):
		return wholeModel
	case framework == "lightgbm" && (suffix == ".txt" || suffix == ".model" ||
		strings.HasPrefix(suffix, ".snapshot_iter_")):
		return wholeLightGBM
	}
	return func(f content) error { return wholeByHead(f, framework) }
}

func wholeByHead(f content, framework string) error {
	head, err := f.bytesAt(0, min(headBytes, f.size))
	switch {
	case err != nil:
		return err
	case bytes.HasPrefix(head, zipMagic):
		return wholeZip(f)
	case bytes.HasPrefix(head, hdfMagic):
		return wholeHDF(f)
	case bytes.HasPrefix(head, lightgbmMagic):
		return wholeLightGBM(f)
	case framework == "pytorch" && bytes.HasPrefix(head, pickleMagic):
		return wholePickled(f)
	case framework == "xgboost":
		return wholeXGBoost(f)
	}
	return nil
}

var zipMagic = []byte("PK\x03\x04")

// wholeZip: the directory at its end is there, and every file that it names lies before it.
func wholeZip(f content) error {
	z, err := zip.NewReader(&metered{f, mostDirectory}, f.size)
	if err != nil {
		return unlessLarge(fmt.Errorf("zip without its end: %w", err))
	}
	if len(z.File) == 0 {
		return errors.New("zip with nothing in it")
	}
	for _, one := range z.File {
		at, err := one.DataOffset()
		if err != nil {
			return unlessLarge(fmt.Errorf("zip: %s: %w", one.Name, err))
		}
		if at > f.size || one.CompressedSize64 > uint64(f.size-at) {
			return fmt.Errorf("zip: %s: %w", one.Name, errCut)
		}
	}
	return nil
}

// mostDirectory is what is read of a zip, in bytes: what is made of its directory takes many times that of memory.
const mostDirectory = 32 << 20

// metered reads so many bytes and no more.
type metered struct {
	io.ReaderAt
	left int64
}

func (m *metered) ReadAt(b []byte, at int64) (int, error) {
	if m.left -= int64(len(b)); m.left < 0 {
		return 0, errLarge
	}
	return m.ReaderAt.ReadAt(b, at)
}

var hdfMagic = []byte("\x89HDF\r\n\x1a\n")

// wholeHDF reads where the file says that it ends (HDF5 file format, superblock): version 0 and 1 by addresses of 8
// bytes at 40 or 44, version 2 and 3 at 28.
func wholeHDF(f content) error {
	head, err := f.bytesAt(0, min(64, f.size))
	switch {
	case err != nil:
		return err
	case !bytes.HasPrefix(head, hdfMagic):
		return errors.New("not HDF5")
	case len(head) < 56:
		return errCut
	}
	at, offsets := 0, head[13]
	switch head[8] {
	case 0:
		at = 40
	case 1:
		at = 44
	case 2, 3:
		at, offsets = 28, head[9]
	}
	if at == 0 || offsets != 8 {
		return nil // another form of it
	}
	if end := binary.LittleEndian.Uint64(head[at:]); end > uint64(f.size) {
		return fmt.Errorf("%d bytes, want %d: %w", f.size, end, errCut)
	}
	return nil
}
