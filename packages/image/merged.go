package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Kind is what an entry of the root is.
type Kind string

// Other kinds (sockets, FIFOs) do not belong at the top of a root and are not listed.
const (
	Dir     Kind = "dir"
	Symlink Kind = "symlink"
	File    Kind = "file"
)

// Entry is a top-level name of the merged root.
type Entry struct {
	Name   string
	Kind   Kind
	Target string // of a symlink, as it stands
	// Paths are where it is, absolute: of a folder all that show, lowest first as in Image.Layers (overlayfs's
	// lowerdir= wants them the other way round); of the others one.
	Paths []string
}

// merged is the root as overlayfs would show it, read from the layers' folders.
type merged struct {
	layers []string // topmost first
	opaque string   // the attribute that marks an opaque folder
}

// node is a name of the merged root: of a folder the layers that show, topmost first; of anything else one.
type node struct {
	path   string // relative to the root, slashes
	layers []int
	info   fs.FileInfo // of the topmost
}

func (i *Image) merged() merged {
	m := merged{layers: slices.Clone(i.Layers), opaque: form{uid: -1}.opaqueXattr()}
	slices.Reverse(m.layers)
	if i.UserXattr {
		m.opaque = form{}.opaqueXattr()
	}
	return m
}

// TopLevel lists the merged root, sorted by name. Whiteouts and opaque folders are honoured, also of the root itself
// and of the folders listed, which overlayfs would not look at when they are the ones that are mounted.
func (i *Image) TopLevel() ([]Entry, error) {
	m := i.merged()
	if len(m.layers) == 0 {
		return nil, nil
	}
	root, err := m.root()
	if err != nil {
		return nil, fmt.Errorf("list image %s: %w", i.Ref, err)
	}
	names := map[string]bool{}
	for _, l := range root.layers {
		entries, err := os.ReadDir(m.layers[l])
		if err != nil {
			return nil, fmt.Errorf("list image %s: %w", i.Ref, err)
		}
		for _, e := range entries {
			names[e.Name()] = true
		}
	}
	var list []Entry
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n, err := m.child(root, name)
		if errors.Is(err, fs.ErrNotExist) { // removed by a whiteout
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list image %s: %w", i.Ref, err)
		}
		e, ok, err := m.entry(n, name)
		if err != nil {
			return nil, fmt.Errorf("list image %s: %w", i.Ref, err)
		}
		if ok {
			list = append(list, e)
		}
	}
	return list, nil
}

func (m merged) entry(n node, name string) (Entry, bool, error) {
	e := Entry{Name: name}
	for _, l := range slices.Backward(n.layers) {
		e.Paths = append(e.Paths, filepath.Join(m.layers[l], n.path))
	}
	switch {
	case n.info.IsDir():
		e.Kind = Dir
	case n.info.Mode().IsRegular():
		e.Kind = File
	case n.info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(e.Paths[0])
		e.Kind, e.Target = Symlink, target
		return e, true, err
	default:
		return Entry{}, false, nil
	}
	return e, true, nil
}

// maxLinks is how many symlinks a path may pass through, as in Linux (path_resolution(7)).
const maxLinks = 40

// Open opens a regular file of the merged root by its absolute path. Symlinks are those of the image: an absolute one
// starts at its root, and nothing leads above it.
func (i *Image) Open(name string) (io.ReadCloser, error) {
	m := i.merged()
	f, err := m.open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s in image %s: %w", name, i.Ref, err)
	}
	return f, nil
}

func (m merged) open(name string) (*os.File, error) {
	if !path.IsAbs(name) {
		return nil, errors.New("want an absolute path")
	}
	n, err := m.walk(name)
	if err != nil {
		return nil, err
	}
	if !n.info.Mode().IsRegular() {
		return nil, fmt.Errorf("got a %s, want a file", n.info.Mode().Type())
	}
	root, err := os.OpenRoot(m.layers[n.layers[0]])
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(filepath.FromSlash(n.path), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	return f, errors.Join(err, root.Close())
}

// walk follows a path through the merged root, symlinks and dots too.
func (m merged) walk(name string) (node, error) {
	root, err := m.root()
	if err != nil {
		return node{}, err
	}
	at := []node{root} // the way down, for ".."
	rest := strings.Split(name, "/")
	links := 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = at[:max(1, len(at)-1)]
			continue
		}
		here := at[len(at)-1]
		if !here.info.IsDir() {
			return node{}, fs.ErrNotExist
		}
		n, err := m.child(here, part)
		if err != nil {
			return node{}, err
		}
		if n.info.Mode()&fs.ModeSymlink == 0 {
			at = append(at, n)
			continue
		}
		if links++; links > maxLinks {
			return node{}, syscall.ELOOP
		}
		target, err := m.readlink(n)
		if err != nil {
			return node{}, err
		}
		if path.IsAbs(target) {
			at = at[:1]
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at[len(at)-1], nil
}

func (m merged) readlink(n node) (_ string, err error) {
	root, err := os.OpenRoot(m.layers[n.layers[0]])
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.Readlink(filepath.FromSlash(n.path))
}

// root is the top; layers below one that is opaque do not show.
func (m merged) root() (node, error) {
	n := node{path: "."}
	for l := range m.layers {
		info, err := os.Lstat(m.layers[l])
		if err != nil {
			return node{}, err
		}
		if n.info == nil {
			n.info = info
		}
		n.layers = append(n.layers, l)
		opaque, err := m.isOpaque(l, ".")
		if err != nil {
			return node{}, err
		}
		if opaque {
			break
		}
	}
	if n.info == nil {
		return node{}, fs.ErrNotExist
	}
	return n, nil
}

// child looks a name up in a folder: in each layer from the top, until one hides the rest.
func (m merged) child(dir node, name string) (node, error) {
	n := node{path: path.Join(dir.path, name)}
	for _, l := range dir.layers {
		info, err := m.lstat(l, n.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return node{}, err
		}
		if isWhiteout(info) || n.info != nil && !info.IsDir() {
			break
		}
		if n.info == nil {
			n.info = info
		}
		n.layers = append(n.layers, l)
		if !info.IsDir() {
			break
		}
		opaque, err := m.isOpaque(l, n.path)
		if err != nil {
			return node{}, err
		}
		if opaque {
			break
		}
	}
	if n.info == nil {
		return node{}, fs.ErrNotExist
	}
	return n, nil
}

func (m merged) lstat(l int, name string) (_ fs.FileInfo, err error) {
	root, err := os.OpenRoot(m.layers[l])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.Lstat(filepath.FromSlash(name))
}

// isOpaque reads the mark of a folder, none of whose parents is a symlink: child has looked at each.
func (m merged) isOpaque(l int, name string) (bool, error) {
	var value [1]byte
	n, err := unix.Lgetxattr(filepath.Join(m.layers[l], filepath.FromSlash(name)), m.opaque, value[:])
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ERANGE):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("attributes of %s: %w", name, err)
	}
	return n == 1 && value[0] == 'y', nil
}

// isWhiteout: overlayfs hides a name by a character device 0:0.
func isWhiteout(info fs.FileInfo) bool {
	if info.Mode()&fs.ModeCharDevice == 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Rdev == 0
}
