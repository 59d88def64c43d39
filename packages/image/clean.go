package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Layer is an unpacked layer in the cache.
type Layer struct {
	Digest string // diff id
	Path   string
	Bytes  int64     // on disk
	Used   time.Time // when an image with it was last asked for
}

// Clean removes the layers that are not in use and have not been asked for since before, and what broken downloads and
// unpackings of that time have left. What an agent holds stays, however old. The few kilobytes of manifests stay too.
// dir is Options.Cache. It returns what it removed.
func Clean(ctx context.Context, dir string, before time.Time) ([]Layer, error) {
	return clean(ctx, dir, before, true)
}

// Unused are the layers that Clean would remove.
func Unused(ctx context.Context, dir string, before time.Time) ([]Layer, error) {
	return clean(ctx, dir, before, false)
}

func clean(ctx context.Context, dir string, before time.Time, remove bool) ([]Layer, error) {
	if _, err := os.Lstat(filepath.Join(dir, "image")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c, err := openCache(dir)
	if err != nil {
		return nil, err
	}
	f, err := formHere(c.root)
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(c.root, "layers", "*", "*"))
	if err != nil {
		return nil, err
	}
	var layers []Layer
	for _, path := range found {
		if ctx.Err() != nil {
			return layers, ctx.Err()
		}
		l, err := c.sweepLayer(f, path, before, remove)
		if err != nil {
			return layers, fmt.Errorf("clean %s: %w", path, err)
		}
		if l != nil {
			layers = append(layers, *l)
		}
	}
	if !remove {
		return layers, nil
	}
	return layers, c.sweepPartial(before)
}

// sweepLayer returns the layer if it is not in use, and removes it then. That needs its exclusive lock.
func (c cache) sweepLayer(f form, path string, before time.Time, remove bool) (_ *Layer, err error) {
	algorithm, name := filepath.Base(filepath.Dir(path)), filepath.Base(path)
	whole := strings.TrimSuffix(name, ".new")
	held, err := c.tryLock("layer-" + algorithm + "-" + whole)
	if err != nil || held == nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	used, err := held.Used()
	if err != nil || !used.Before(before) {
		return nil, err
	}
	if whole != name { // of an agent that was killed while it unpacked
		if !remove {
			return nil, nil
		}
		return nil, f.removeAll(path)
	}
	hex, _, _ := strings.Cut(name, "-")
	l := &Layer{Digest: algorithm + ":" + hex, Path: path, Used: used}
	if l.Bytes, err = size(path); err != nil {
		return nil, err
	}
	if !remove {
		return l, nil
	}
	gone := path + ".new" // a half removed layer must not look like one
	if err := f.removeAll(gone); err != nil {
		return nil, err
	}
	if err := os.Rename(path, gone); err != nil {
		return nil, err
	}
	return l, f.removeAll(gone)
}

func (c cache) sweepPartial(before time.Time) error {
	found, err := filepath.Glob(filepath.Join(c.root, "partial", "*"))
	if err != nil {
		return err
	}
	for _, path := range found {
		held, err := c.tryLock("blob-" + filepath.Base(path))
		if err != nil {
			return err
		}
		if held == nil {
			continue
		}
		info, err := os.Lstat(path)
		if err == nil && info.ModTime().Before(before) {
			err = os.Remove(path)
		}
		if err := errors.Join(unless(err, fs.ErrNotExist), held.Release()); err != nil {
			return err
		}
	}
	return nil
}

// size is what a folder takes on disk, in bytes. What cannot be read is not counted.
func size(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += stat.Blocks * 512 // stat(2): in units of 512 bytes
		}
		return nil
	})
	return sum, err
}
