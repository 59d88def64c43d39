package packages

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// What a package may hold at most.
const (
	maxFiles = 100_000
	maxBytes = 8 << 30
)

// Unpack lays a package out at dir, whole or not at all: it is written beside dir and renamed. A dir
// that exists already is left as it is: the package of one app does not change under its feet.
func Unpack(src fs.FS, dir string) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".unpack-")
	if err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	if err := Copy(src, tmp); err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Lstat(dir); there == nil {
			return nil // another agent on this host was first
		}
		return fmt.Errorf("unpack package: %w", err)
	}
	return nil
}

// Copy writes every file of src under the existing folder dir, through os.Root: nothing lands
// elsewhere. Links must be relative and stay inside.
func Copy(src fs.FS, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	files, bytes := 0, int64(0)
	var links []string
	err = fs.WalkDir(src, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if files++; files > maxFiles {
			return fmt.Errorf("got more than %d files", maxFiles)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return mkdir(root, name)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := fs.ReadLink(src, name)
			if err != nil {
				return err
			}
			links = append(links, name)
			return symlink(root, name, target)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s: got a %s, want files, folders and links", name, info.Mode().Type())
		}
		if bytes += info.Size(); bytes > maxBytes {
			return fmt.Errorf("got more than %d bytes", int64(maxBytes))
		}
		f, err := src.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(write(root, name, f, info.Mode()), f.Close())
	})
	return errors.Join(err, inside(root, links))
}

func untar(r *tar.Reader, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	files, bytes := 0, int64(0)
	var links []string
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return inside(root, links)
		}
		if err != nil {
			return err
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "./"))
		if name == "." {
			continue
		}
		if !fs.ValidPath(name) {
			return fmt.Errorf("entry %q: got a path that leads outside, want a relative path", h.Name)
		}
		if files, bytes = files+1, bytes+h.Size; files > maxFiles || bytes > maxBytes {
			return fmt.Errorf("got more than %d files or %d bytes", maxFiles, int64(maxBytes))
		}
		if err := mkdir(root, path.Dir(name)); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = mkdir(root, name)
		case tar.TypeReg:
			err = write(root, name, r, h.FileInfo().Mode())
		case tar.TypeSymlink:
			links = append(links, name)
			err = symlink(root, name, h.Linkname)
		case tar.TypeXGlobalHeader:
		default:
			err = fmt.Errorf("entry %q: got type %q, want files, folders and links", h.Name, h.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func mkdir(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	return root.MkdirAll(name, 0o755)
}

func symlink(root *os.Root, name, target string) error {
	if path.IsAbs(target) || !fs.ValidPath(path.Join(path.Dir(name), target)) {
		return fmt.Errorf("%s: got a link to %s, want one that stays inside the package", name, target)
	}
	return root.Symlink(target, name)
}

// inside follows each link once all are there: one that passes through others may lead out although its text does not.
// It may lead nowhere.
func inside(root *os.Root, links []string) error {
	for _, name := range links {
		if _, err := root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: got a link that cannot be followed, want one that stays inside the package: %w", name, err)
		}
	}
	return nil
}

// write keeps the execute bits and drops setuid and the like.
func write(root *os.Root, name string, from io.Reader, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode.Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
