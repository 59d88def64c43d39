package packages

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Unpack lays a package out at dir, whole or not at all: it is written beside dir and renamed. stamp
// says for whom, usually the run: what stands there with the same stamp is left as it is, for the
// package of a run does not change under its feet; anything else is replaced. Agents of one host may
// call it at once. The folder around dir may lie in the package itself: it is left out.
func Unpack(src fs.FS, dir, stamp string) (err error) {
	around := filepath.Dir(dir)
	if err := os.MkdirAll(around, 0o755); err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	unlock, err := lock(filepath.Join(around, ".package.lock"))
	if err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	mark := filepath.Join(around, ".package.stamp")
	if have, err := os.ReadFile(mark); err == nil && string(have) == stamp {
		if _, err := os.Lstat(dir); err == nil {
			return nil
		}
	}
	if err := replace(src, dir, around); err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	return os.WriteFile(mark, []byte(stamp), 0o644)
}

func lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f.Close, nil
}

func replace(src fs.FS, dir, around string) (err error) {
	left, err := filepath.Glob(filepath.Join(around, ".unpack-*")) // of an agent that was killed here
	if err != nil {
		return err
	}
	for _, old := range left {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(around, ".unpack-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	skip, err := os.Stat(around)
	if err != nil {
		return err
	}
	if err := copyTree(src, tmp, skip); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// Copy writes every file of src under the existing folder dir, through os.Root: nothing lands
// elsewhere. Links must be relative and stay inside.
func Copy(src fs.FS, dir string) error { return copyTree(src, dir, nil) }

// copyTree leaves out the folder skip, when it lies in src.
func copyTree(src fs.FS, dir string, skip fs.FileInfo) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var room room
	var links []string
	err = fs.WalkDir(src, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && skip != nil && os.SameFile(info, skip) && name == ".":
			return errors.New("the package folder is the work folder: name another")
		case d.IsDir() && skip != nil && os.SameFile(info, skip):
			return fs.SkipDir
		case name == ".":
			return nil
		}
		if err := room.take(info.Size()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
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
		f, err := src.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(write(root, name, io.LimitReader(f, info.Size()), info.Mode()), f.Close())
	})
	return errors.Join(err, inside(root, links))
}

// room is what is left of the limits. The sizes that an archive states are a stranger's.
type room struct {
	files int
	bytes int64
}

func (r *room) take(size int64) error {
	if r.files++; r.files > maxFiles {
		return fmt.Errorf("got more than %d files", maxFiles)
	}
	if size < 0 || size > maxBytes-r.bytes {
		return fmt.Errorf("got more than %d bytes", int64(maxBytes))
	}
	r.bytes += size
	return nil
}

func mkdir(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	return root.MkdirAll(name, 0o755)
}

func symlink(root *os.Root, name, target string) error {
	if err := checkTarget(name, target); err != nil {
		return at(name, err)
	}
	return root.Symlink(target, name)
}

// inside follows each link once all are there.
func inside(root *os.Root, links []string) error {
	for _, name := range links {
		if err := leadsInside(root, name); err != nil {
			return at(name, err)
		}
	}
	return nil
}

// leadsInside follows a link: one that passes through others may lead out although its text does not. It may lead nowhere.
func leadsInside(root *os.Root, name string) error {
	if _, err := root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refuse(BadLink, fmt.Sprintf("got a link that cannot be followed (%v)", err), "one that stays inside the package")
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
