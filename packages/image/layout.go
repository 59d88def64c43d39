package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layout reads an OCI image layout (OCI Image Specification 1.1, image-layout.md) where it lies; nothing of it but the
// unpacked layers is copied. Links that lead out of its folder are not followed: a definition that names a layout must
// not have the agent read what it could not read itself.
type layout struct {
	dir  string
	open func(dir string) (Folder, error)
}

// Folder is an open folder whose links that lead out of it are not followed, as *os.Root is.
type Folder interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Close() error
}

func openFolder(dir string) (Folder, error) { return os.OpenRoot(dir) }

func (l layout) close() {}

// resolve finds the tag in index.json; without one the only image, or all of them, of which the platform decides.
func (l layout) resolve(_ context.Context, tag string) (ispec.Descriptor, error) {
	text, err := l.read(ispec.ImageIndexFile, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return ispec.Descriptor{}, fmt.Errorf("layout %s: %w: %s", l.dir, ErrNotFound, ispec.ImageIndexFile)
	}
	if err != nil {
		return ispec.Descriptor{}, err
	}
	var index ispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return ispec.Descriptor{}, refuse("layout %s: %s: %v", l.dir, ispec.ImageIndexFile, err)
	}
	var tags []string
	for _, d := range index.Manifests {
		name := d.Annotations[ispec.AnnotationRefName]
		if tag != "" && (name == tag || strings.HasSuffix(name, ":"+tag)) { // some tools write the whole reference
			return d, nil
		}
		tags = append(tags, name)
	}
	slices.Sort(tags)
	named := printable(strings.Join(slices.Compact(tags), ", "))
	switch {
	case tag != "":
		return ispec.Descriptor{}, fmt.Errorf("layout %s: tag %s: %w; tags that are there: %s", l.dir, tag, ErrNotFound,
			named)
	case len(index.Manifests) == 1:
		return index.Manifests[0], nil
	case len(index.Manifests) == 0:
		return ispec.Descriptor{}, fmt.Errorf("layout %s: %w: it holds no image", l.dir, ErrNotFound)
	}
	return ispec.Descriptor{}, fmt.Errorf("layout %s: %w: it holds %d images, and none was named; tags that are "+
		"there: %s", l.dir, ErrReference, len(index.Manifests), named)
}

func (l layout) small(_ context.Context, what string, d ispec.Descriptor) ([]byte, error) {
	text, err := l.read(blobName(d), maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("layout %s: %s %s: %w", l.dir, what, d.Digest, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return text, checkBytes(what, d.Digest, text)
}

func (l layout) layer(_ context.Context, d ispec.Descriptor) (*blob, error) {
	f, err := l.file(blobName(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("layout %s: layer %s: %w", l.dir, d.Digest, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &blob{File: f}, nil
}

// blobName is safe for a digest that has been validated.
func blobName(d ispec.Descriptor) string {
	return filepath.Join(ispec.ImageBlobsDir, d.Digest.Algorithm().String(), d.Digest.Encoded())
}

// file opens a regular file, without waiting at a FIFO.
func (l layout) file(name string) (_ *os.File, err error) {
	root, err := l.open(l.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refuse("layout %s: %s: got a %s, want a file", l.dir, name, info.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (l layout) read(name string, most int64) (_ []byte, err error) {
	f, err := l.file(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = refuse("%s: got more than %d bytes", name, most)
	}
	return text, err
}
