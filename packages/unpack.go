package packages

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unpack lays a package out at dir, whole or not at all: it is written beside dir and renamed. stamp
// says for whom, usually the run: what stands there with the same stamp is left as it is, for the
// package of a run does not change under its feet; anything else is replaced, and so is what another user has
// laid there. Agents of one host may call it at once. The folder around dir may lie in the package itself: it is left
// out.
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
	stands, err := stamped(dir, mark, stamp)
	if err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	if stands {
		return nil
	}
	if err := replaceable(dir, mark); err != nil {
		return fmt.Errorf("unpack package: %w", err)
	}
	if err := writeStamp(mark, ""); err != nil { // from here on what stands there is ours, whoever is killed
		return fmt.Errorf("unpack package: %w", err)
	}
	if err := replace(src, dir, around); err != nil {
		err = fmt.Errorf("unpack package: %w", err)
		if _, missing := os.Lstat(dir); errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(mark)) // of nothing
		}
		return err
	}
	return writeStamp(mark, stamp)
}

// ErrForeign says that something stands at the package's place that was not laid there by Unpack.
var ErrForeign = errors.New("holds what muster has not laid there")

// replaceable refuses to take away what nobody here has laid out: a person's own folder of that name.
func replaceable(dir, mark string) error {
	if info, err := os.Lstat(mark); err == nil && info.Mode().IsRegular() {
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w, and cannot be read as a folder: %w", dir, ErrForeign, err)
	}
	return fmt.Errorf("%s: %w: it has no %s beside it", dir, ErrForeign, filepath.Base(mark))
}

// stamped tells that the folder stands there with this stamp, and that both are of the user that files made here are
// of: somebody else could have laid anything.
func stamped(dir, mark, stamp string) (bool, error) {
	me, err := ownerHere(filepath.Dir(mark))
	if err != nil {
		return false, err
	}
	for path, kind := range map[string]uint32{dir: unix.S_IFDIR, mark: unix.S_IFREG} {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Uid != me || st.Mode&unix.S_IFMT != kind {
			return false, nil //nolint:nilerr // what is not there is replaced
		}
	}
	have, err := os.ReadFile(mark)
	return err == nil && string(have) == stamp, nil
}

// ownerHere is whose a file is that is made in a folder: a file system of another machine may make root somebody else.
func ownerHere(dir string) (uid uint32, err error) {
	f, err := os.CreateTemp(dir, ".unpack-") // of one that was killed here it is swept
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &st)
	return st.Uid, errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// writeStamp follows no link that somebody has put there.
func writeStamp(mark, stamp string) error {
	f, err := os.CreateTemp(filepath.Dir(mark), ".unpack-")
	if err != nil {
		return err
	}
	_, err = f.WriteString(stamp)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), mark)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

func lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o644)
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

// CopyFile copies a file of this machine to a new one, which its owner may write to.
func CopyFile(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode.Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

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
			return fmt.Errorf("%s: got a %s, want files, folders and links", name, KindName(info.Mode()))
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

// leadsInside follows a link: one that passes through others may lead out although its text does not. It may lead
// nowhere.
func leadsInside(root *os.Root, name string) error {
	if _, err := root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refuse(badLink, fmt.Sprintf("got a link that cannot be followed (%v)", err),
			"one that stays inside the package")
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
