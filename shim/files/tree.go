package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Tree is an open folder that a process may do with as it likes: links lead no further than the folder, and
// nothing in it is waited for.
func Tree(root *os.Root) fs.FS { return tree{root} }

type tree struct{ root *os.Root }

// Open opens files without waiting: a pipe that has taken a file's place would wait for somebody to write to it.
func (f tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (f tree) Stat(name string) (fs.FileInfo, error) { return f.root.Stat(name) }

// hostTree is a folder of this machine whose links are followed wherever they lead: its process is no more confined.
type hostTree struct {
	dir  string
	user User
}

func (f hostTree) path(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return filepath.Join(f.dir, name), nil
}

// Open does not wait either.
func (f hostTree) Open(name string) (fs.File, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	if f.user.limited() {
		return openNoMagic(path, flags, 0)
	}
	return os.OpenFile(path, flags, 0)
}

func (f hostTree) Stat(name string) (fs.FileInfo, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	if f.user.limited() {
		return statNoMagic(path, 0)
	}
	return os.Stat(path)
}
