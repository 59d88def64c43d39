package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
)

// tree is the content of a local folder.
type tree struct {
	root  store.Folder
	dirs  []string
	files []entry
	odd   []string
	// moving: the folder is still written to; a file that is removed while it is read does not count.
	moving bool
}

// entry is a file by its path in the folder.
type entry struct {
	name string
	look look
}

// look tells whether a file has changed.
type look struct {
	size int64 // bytes
	at   time.Time
}

func lookOf(info os.FileInfo) look { return look{info.Size(), info.ModTime()} }

// mostFiles is the limit of files and folders of one output: links to folders can multiply them.
const mostFiles = 1_000_000

func (t *tree) read(ctx context.Context, dir string, depth int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if depth > transfer.Deepest {
		return fmt.Errorf("%s: got more than %d folders in each other, want no link that leads back", dir,
			transfer.Deepest)
	}
	d, err := t.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, base := range names {
		if len(t.files)+len(t.dirs) >= mostFiles {
			return fmt.Errorf("%s: got more than %d files and folders, want less: do links lead to the same folders?",
				t.root.Name(), mostFiles)
		}
		if err := t.add(ctx, path.Join(dir, base), depth); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) add(ctx context.Context, name string, depth int) error {
	info, err := t.root.Stat(name)
	switch {
	case err != nil:
		return t.gone(err)
	case info.IsDir():
		t.dirs = append(t.dirs, name)
		return t.gone(t.read(ctx, name, depth+1))
	case info.Mode().IsRegular():
		t.files = append(t.files, entry{name, lookOf(info)})
	default:
		t.odd = append(t.odd, name)
	}
	return nil
}

func (t *tree) gone(err error) error {
	if t.moving && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (t *tree) left() Left {
	left := Left{Files: len(t.files), Skipped: t.odd}
	for _, f := range t.files {
		left.Bytes += f.look.size
	}
	return left
}

// uploads are the files for a folder of a store. It makes all folders there, the empty ones too.
func (t *tree) uploads(ctx context.Context, in store.Store, to string) ([]store.Upload, error) {
	for _, dir := range append([]string{"."}, t.dirs...) {
		if err := in.MkdirAll(ctx, path.Join(to, dir)); err != nil {
			return nil, err
		}
	}
	uploads := make([]store.Upload, len(t.files))
	for i, e := range t.files {
		uploads[i] = store.Upload{From: t.root, Name: e.name, To: path.Join(to, e.name)}
	}
	return uploads, nil
}
