// Package packages reads app packages as files: it opens a folder or an archive as an fs.FS and
// lays one out on disk. It knows nothing of what the files mean.
//
// A package comes from a stranger: every path is checked by os.Root, links may not leave the
// package, and an archive has a size that it may not exceed.
package packages

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Package is an opened app package.
type Package struct {
	fs.FS
	Name   string // folder or archive name without its ending
	Path   string // absolute; empty for one that is not on disk
	Digest string // sha256 of an archive's bytes; empty for a folder
	// Folder tells that FS is the folder at Path, to be used in place.
	Folder bool

	close []func() error
}

// Close frees what Open took: handles and temporary folders.
func (p *Package) Close() error {
	var errs []error
	for _, one := range slices.Backward(p.close) {
		errs = append(errs, one())
	}
	return errors.Join(errs...)
}

// endings are the archive names that Open understands.
func endings() []string { return []string{".zip", ".tar.gz", ".tgz"} }

// Open opens a folder or archive; a `file:` prefix is allowed.
func Open(path string) (*Package, error) {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "file://"), "file:")
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open package: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open package %s: %w", path, err)
	}
	p := &Package{Path: abs, Name: baseName(abs)}
	switch {
	case info.IsDir():
		p.FS, p.Folder = os.DirFS(abs), true
		return p, nil
	case strings.HasSuffix(path, ".zip"):
		err = p.openZip()
	case strings.HasSuffix(path, ".tar.gz"), strings.HasSuffix(path, ".tgz"):
		err = p.openTar()
	default:
		return nil, fmt.Errorf("open package %s: want a folder or one of %s", path, strings.Join(endings(), " "))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open package %s: %w", path, err), p.Close())
	}
	return p, nil
}

func (p *Package) openZip() error {
	if err := p.digest(); err != nil {
		return err
	}
	r, err := zip.OpenReader(p.Path)
	if err != nil {
		return err
	}
	p.close = append(p.close, r.Close)
	var room room
	for _, f := range r.File {
		if !fs.ValidPath(strings.TrimSuffix(f.Name, "/")) {
			return fmt.Errorf("entry %q: got a path that leads outside, want a relative path", f.Name)
		}
		if m := f.Mode(); !m.IsRegular() && !m.IsDir() {
			return fmt.Errorf("entry %q: got a %s, want files and folders only", f.Name, m.Type())
		}
		if err := room.take(int64(min(f.UncompressedSize64, math.MaxInt64))); err != nil { // math.MaxInt64 is more than there is room for
			return fmt.Errorf("entry %q: %w", f.Name, err)
		}
	}
	p.FS = within(r)
	return nil
}

// openTar lays the archive out in a temporary folder: a tar cannot be read out of order.
func (p *Package) openTar() (err error) {
	if err := p.digest(); err != nil {
		return err
	}
	f, err := os.Open(p.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "muster-package-")
	if err != nil {
		return err
	}
	p.close = append(p.close, func() error { return os.RemoveAll(dir) })
	if err := untar(tar.NewReader(z), dir); err != nil {
		return err
	}
	p.FS = within(os.DirFS(dir))
	return nil
}

// within enters the one folder that an archive holds and nothing beside it: so do people pack folders.
func within(archive fs.FS) fs.FS {
	entries, err := fs.ReadDir(archive, ".")
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		return archive
	}
	inner, err := fs.Sub(archive, entries[0].Name())
	if err != nil {
		return archive
	}
	return inner
}

func (p *Package) digest() (err error) {
	f, err := os.Open(p.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	p.Digest = hex.EncodeToString(h.Sum(nil))
	return nil
}

func baseName(path string) string {
	name := filepath.Base(path)
	for _, e := range endings() {
		if trimmed, ok := strings.CutSuffix(name, e); ok {
			return trimmed
		}
	}
	return name
}
