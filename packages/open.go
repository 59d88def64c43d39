package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Open opens a folder, or an archive: zip, tar, tar.gz or tar.zst. The content tells which, the name must not say
// otherwise; a `file:` prefix is allowed. What is wrong with an archive is a *RefusedError.
func Open(path string) (*Package, error) { return open(path, false) }

// OpenOwn is Open that reads an archive from a copy of its own: whoever may write to the file cannot change what Digest
// is of afterwards. A folder is opened in place.
func OpenOwn(path string) (*Package, error) { return open(path, true) }

func open(path string, own bool) (*Package, error) {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "file://"), "file:")
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open package: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open package %s: %w", path, err)
	}
	p := &Package{Path: abs, Name: BaseName(abs)}
	if info.IsDir() {
		root, err := os.OpenRoot(abs)
		if err != nil {
			return nil, fmt.Errorf("open package: %w", err)
		}
		p.FS, p.Folder, p.close = root.FS(), true, append(p.close, root.Close)
		return p, nil
	}
	if err := p.openArchive(own); err != nil {
		return nil, errors.Join(fmt.Errorf("open package %w", in(path, err)), p.Close())
	}
	return p, nil
}

func (p *Package) openArchive(own bool) error {
	// Opening reads a local file: nobody waits for a network.
	ctx := context.Background()
	a, err := openArchive(p.Path, "")
	if err == nil && own {
		a, err = a.copied(ctx)
	}
	if err != nil {
		return err
	}
	p.close = append(p.close, a.Close)
	if p.Digest, err = a.digest(ctx); err != nil {
		return err
	}
	limits := Limits{}.filled()
	if a.kind == kindZip {
		r, err := a.directory(limits)
		if err != nil {
			return err
		}
		plain, err := plainZip(r, a.size, limits)
		if err != nil {
			return err
		}
		if plain {
			p.FS = within(r)
			return nil
		}
	}
	return p.layOut(ctx, a, limits)
}

// layOut unpacks the archive in a temporary folder: a tar cannot be read out of order, nor a zip's links as such.
func (p *Package) layOut(ctx context.Context, a *archive, l Limits) error {
	dir, err := os.MkdirTemp("", "muster-package-")
	if err != nil {
		return err
	}
	p.close = append(p.close, func() error { return os.RemoveAll(dir) })
	if _, _, err := a.extract(ctx, dir, l); err != nil {
		return err
	}
	p.FS = os.DirFS(dir)
	if inner, ok := onlyFolder(p.FS); ok {
		p.FS = os.DirFS(filepath.Join(dir, inner)) // fs.Sub knows no links
	}
	return nil
}

// within enters the one folder that an archive holds and nothing beside it: so do people pack folders.
func within(archive fs.FS) fs.FS {
	name, ok := onlyFolder(archive)
	if !ok {
		return archive
	}
	inner, err := fs.Sub(archive, name)
	if err != nil {
		return archive
	}
	return inner
}

func onlyFolder(archive fs.FS) (string, bool) {
	entries, err := fs.ReadDir(archive, ".")
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		return "", false
	}
	return entries[0].Name(), true
}

// ReadLink makes it an fs.ReadLinkFS, for packages have links.
func (p *Package) ReadLink(name string) (string, error) { return fs.ReadLink(p.FS, name) }

// Lstat is the other half of fs.ReadLinkFS.
func (p *Package) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(p.FS, name) }
