package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/muster-agent/muster/shim/store"
)

// below is the folder of a store on this host. Others may write there, and who reads or removes may be root: nothing in
// it is reached through a link, not even through one that appears meanwhile, and nothing is opened but files and
// folders. muster puts nothing else there.
type below struct {
	name string
	root atomic.Pointer[os.Root]
}

// reopen opens the folder again if another one has its name by now. The one before is closed when its last user is
// done: os.Root has a finalizer.
func (b *below) reopen() error {
	now, err := os.Stat(b.name)
	if err != nil {
		return err
	}
	if root := b.root.Load(); root != nil {
		if was, err := root.Stat("."); err == nil && os.SameFile(was, now) {
			return nil
		}
	}
	root, err := os.OpenRoot(b.name)
	if err == nil {
		b.root.Store(root)
	}
	return err
}

// do acts on a name in the folder that it is directly in.
func (b *below) do(op, path string, act func(in *os.Root, name string) error) error {
	rest, err := filepath.Rel(b.name, path)
	if err != nil || !filepath.IsLocal(rest) {
		return &fs.PathError{Op: op, Path: path, Err: fs.ErrPermission}
	}
	in := b.root.Load()
	if in == nil {
		return &fs.PathError{Op: op, Path: b.name, Err: fs.ErrNotExist}
	}
	elements := strings.Split(rest, "/")
	for i, element := range elements[:len(elements)-1] {
		next, err := enter(in, element)
		if i > 0 {
			_ = in.Close() // it was only passed
		}
		if err != nil {
			return &fs.PathError{Op: op, Path: path, Err: err}
		}
		in = next
	}
	err = act(in, elements[len(elements)-1])
	if len(elements) > 1 {
		_ = in.Close() // as above
	}
	return err
}

// enter opens a folder in one, unless something else has its name.
func enter(in *os.Root, name string) (*os.Root, error) {
	info, err := plain(in, name)
	if err != nil {
		return nil, err
	}
	next, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	is, err := next.Stat(".")
	if err = errors.Join(err, same(name, info, is)); err != nil {
		_ = next.Close() // the first error says more
		return nil, err
	}
	return next, nil
}

// plain describes a file or folder, and refuses all else.
func plain(in *os.Root, name string) (fs.FileInfo, error) {
	info, err := in.Lstat(name)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = oddError{name, info.Mode()}
	}
	return info, err
}

// odd is an error where something lies that is neither a file nor a folder.
func (b *below) odd(path string) error {
	return b.do("open", path, func(in *os.Root, name string) error {
		_, err := plain(in, name)
		if err != nil {
			err = &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return err
	})
}

// oddError is what muster has not put into a store.
type oddError struct {
	name string
	mode fs.FileMode
}

func (e oddError) Error() string {
	return fmt.Sprintf("%s is a %s, want a file or a folder", e.name, store.KindOf(e.mode))
}

func same(name string, was, is fs.FileInfo) error {
	if is == nil || os.SameFile(was, is) {
		return nil
	}
	return fmt.Errorf("%s was replaced just now", name)
}

// OpenFile opens a file or folder without waiting for anybody.
func (b *below) OpenFile(path string, flag int, perm fs.FileMode) (f *os.File, err error) {
	err = b.do("open", path, func(in *os.Root, name string) error {
		if flag&os.O_EXCL != 0 { // it follows no link, and opens nothing that is there
			f, err = in.OpenFile(name, flag, perm)
			return err
		}
		info, err := plain(in, name)
		if err != nil {
			return err
		}
		if f, err = in.OpenFile(name, flag|syscall.O_NONBLOCK, perm); err != nil {
			return err
		}
		is, err := f.Stat()
		if err = errors.Join(err, same(name, info, is)); err != nil {
			_ = f.Close() // the first error says more
		}
		return err
	})
	return f, err
}

// Stat describes what lies there; a link is none that leads anywhere.
func (b *below) Stat(path string) (fs.FileInfo, error) { return b.Lstat(path) }

// Lstat is Stat.
func (b *below) Lstat(path string) (info fs.FileInfo, err error) {
	err = b.do("stat", path, func(in *os.Root, name string) error {
		info, err = in.Lstat(name)
		return err
	})
	return info, err
}

// MkdirAll makes a folder, and those above it.
func (b *below) MkdirAll(path string, perm fs.FileMode) error {
	if path == b.name {
		return nil
	}
	err := b.mkdir(path, perm)
	if errors.Is(err, fs.ErrNotExist) {
		if err = b.MkdirAll(filepath.Dir(path), perm); err == nil {
			err = b.mkdir(path, perm)
		}
	}
	return err
}

func (b *below) mkdir(path string, perm fs.FileMode) error {
	return b.do("mkdir", path, func(in *os.Root, name string) error {
		err := in.Mkdir(name, perm)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := in.Lstat(name)
		if err == nil && !info.IsDir() {
			err = oddError{name, info.Mode()}
		}
		return err
	})
}

// Rename gives a file another name in its folder.
func (b *below) Rename(from, to string) error {
	if filepath.Dir(from) != filepath.Dir(to) {
		return &fs.PathError{Op: "rename", Path: from, Err: errors.ErrUnsupported}
	}
	return b.do("rename", from, func(in *os.Root, name string) error { return in.Rename(name, filepath.Base(to)) })
}

// Remove takes away a file or an empty folder.
func (b *below) Remove(path string) error {
	return b.do("remove", path, func(in *os.Root, name string) error { return in.Remove(name) })
}

// RemoveAll takes away a file, or a folder with all that is in it.
func (b *below) RemoveAll(path string) error {
	return b.do("remove", path, func(in *os.Root, name string) error { return in.RemoveAll(name) })
}
