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

// HostTree is a folder of this machine whose links are followed wherever they lead: its process is no more confined.
func HostTree(dir string) fs.FS { return hostTree{os.DirFS(dir), dir} }

type hostTree struct {
	fs.FS
	dir string
}

// Open does not wait either.
func (f hostTree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return os.OpenFile(filepath.Join(f.dir, name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (f hostTree) Stat(name string) (fs.FileInfo, error) { return fs.Stat(f.FS, name) }

func (f hostTree) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(f.FS, name) }
