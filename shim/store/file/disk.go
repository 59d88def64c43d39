package file

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// disk is how files of this machine are reached, by absolute paths.
type disk interface {
	OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error)
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	MkdirAll(path string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(path string) error
	RemoveAll(path string) error
}

// Machine is all of it, with the rights of this process.
type Machine struct{}

// OpenFile is os.OpenFile.
func (Machine) OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// Stat is os.Stat.
func (Machine) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// Lstat is os.Lstat.
func (Machine) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

// MkdirAll is os.MkdirAll.
func (Machine) MkdirAll(path string, perm fs.FileMode) error { return os.MkdirAll(path, perm) }

// Rename is os.Rename.
func (Machine) Rename(from, to string) error { return os.Rename(from, to) }

// Remove is os.Remove.
func (Machine) Remove(path string) error { return os.Remove(path) }

// RemoveAll is os.RemoveAll.
func (Machine) RemoveAll(path string) error { return os.RemoveAll(path) }

// Below is what lies in one folder. No link leads out of it, nor is one followed that names its target from / on;
// whoever can lay links there reaches nothing else through who reads and writes here for him.
type Below struct {
	Root *os.Root
	Name string // the folder as paths name it
	Real string // the same without links; empty: Name is
}

// in is a path by its name in the folder.
func (b Below) in(path string) (string, error) {
	for _, name := range []string{b.Name, b.Real} {
		rest, err := filepath.Rel(name, filepath.Clean(path))
		if name != "" && err == nil && filepath.IsLocal(rest) {
			return rest, nil
		}
	}
	return "", &fs.PathError{
		Op: "open", Path: path, Err: fmt.Errorf("it leads out of %s: %w", b.Name, fs.ErrPermission),
	}
}

// OpenFile is that of the folder.
func (b Below) OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	name, err := b.in(path)
	if err != nil {
		return nil, err
	}
	return b.Root.OpenFile(name, flag, perm)
}

// Stat is that of the folder. The folders above it are folders, and nothing more is told of them.
func (b Below) Stat(path string) (fs.FileInfo, error) {
	above := strings.TrimRight(filepath.Clean(path), "/") + "/"
	if strings.HasPrefix(b.Name, above) || strings.HasPrefix(b.Real, above) {
		return b.Root.Stat(".")
	}
	name, err := b.in(path)
	if err != nil {
		return nil, err
	}
	return b.Root.Stat(name)
}

// Lstat is that of the folder.
func (b Below) Lstat(path string) (fs.FileInfo, error) {
	name, err := b.in(path)
	if err != nil {
		return nil, err
	}
	return b.Root.Lstat(name)
}

// MkdirAll is that of the folder.
func (b Below) MkdirAll(path string, perm fs.FileMode) error {
	name, err := b.in(path)
	if err != nil {
		return err
	}
	return b.Root.MkdirAll(name, perm)
}

// Rename is that of the folder.
func (b Below) Rename(from, to string) error {
	source, err := b.in(from)
	if err != nil {
		return err
	}
	target, err := b.in(to)
	if err != nil {
		return err
	}
	return b.Root.Rename(source, target)
}

// Remove is that of the folder.
func (b Below) Remove(path string) error {
	name, err := b.in(path)
	if err != nil {
		return err
	}
	return b.Root.Remove(name)
}

// RemoveAll is that of the folder.
func (b Below) RemoveAll(path string) error {
	name, err := b.in(path)
	if err != nil {
		return err
	}
	return b.Root.RemoveAll(name)
}
