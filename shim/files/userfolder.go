package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/plan"
)

// UserFolder is an open folder in which everything is done with the rights of a user, and nothing leaves the folder. An
// agent that is root does through it what the app's process could do by itself, and no more.
type UserFolder struct {
	root *os.Root
	name string // its path
	user User
}

// In is an open folder in which everything is done with the user's rights. The folder closes root.
func (u User) In(root *os.Root) UserFolder { return UserFolder{root, filepath.Clean(root.Name()), u} }

// Name is the folder's path.
func (f UserFolder) Name() string { return f.name }

// Rel is an absolute path as a name in the folder.
func (f UserFolder) Rel(path string) (string, error) { return relative(f.name, path) }

// Close closes the folder.
func (f UserFolder) Close() error { return f.root.Close() }

// OpenFile is os.Root's.
func (f UserFolder) OpenFile(name string, flag int, perm fs.FileMode) (file *os.File, err error) {
	err = f.user.Do(func() (err error) { file, err = f.root.OpenFile(name, flag, perm); return err })
	return file, err
}

// OpenFolder opens a folder in the folder.
func (f UserFolder) OpenFolder(name string) (in UserFolder, err error) {
	in = UserFolder{name: filepath.Join(f.name, name), user: f.user}
	err = f.user.Do(func() (err error) { in.root, err = f.root.OpenRoot(name); return err })
	return in, err
}

// Make makes a folder, and those above it in this one, and opens it. A link on the way is refused.
func (f UserFolder) Make(name string) (in UserFolder, err error) {
	in = UserFolder{name: filepath.Join(f.name, name), user: f.user}
	err = f.user.Do(func() (err error) { in.root, err = makeIn(f.root, name); return err })
	return in, err
}

// Stat is os.Root's.
func (f UserFolder) Stat(name string) (info fs.FileInfo, err error) {
	err = f.user.Do(func() (err error) { info, err = f.root.Stat(name); return err })
	return info, err
}

// Lstat is os.Root's.
func (f UserFolder) Lstat(name string) (info fs.FileInfo, err error) {
	err = f.user.Do(func() (err error) { info, err = f.root.Lstat(name); return err })
	return info, err
}

// Mkdir is os.Root's.
func (f UserFolder) Mkdir(name string, perm fs.FileMode) error {
	return f.user.Do(func() error { return f.root.Mkdir(name, perm) })
}

// MkdirAll is os.Root's.
func (f UserFolder) MkdirAll(name string, perm fs.FileMode) error {
	return f.user.Do(func() error { return f.root.MkdirAll(name, perm) })
}

// Rename is os.Root's.
func (f UserFolder) Rename(from, to string) error {
	return f.user.Do(func() error { return f.root.Rename(from, to) })
}

// Remove is os.Root's.
func (f UserFolder) Remove(name string) error {
	return f.user.Do(func() error { return f.root.Remove(name) })
}

// RemoveAll is os.Root's.
func (f UserFolder) RemoveAll(name string) error {
	return f.user.Do(func() error { return f.root.RemoveAll(name) })
}

// Clear is RemoveAll of what a process has had, also of folders that it has closed to itself, and of those of other
// users that it is root of.
func (f UserFolder) Clear(name string) error {
	remove := func() error { return removeClosed(f.root, name) }
	err := f.user.Do(remove)
	if !errors.Is(err, fs.ErrPermission) || !f.user.another() || f.user.facts.Commands == nil {
		return err
	}
	take := func(info fs.FileInfo) bool { return info.IsDir() && f.user.facts.Commands(int(ownerOf(info).Uid)) }
	if err := f.user.ownIf(f.root, name, take); err != nil {
		return err
	}
	below, err := f.root.OpenRoot(name)
	if err != nil {
		return err
	}
	err = walk(below, func(path string, _ fs.FileInfo) error { return f.user.ownIf(below, path, take) })
	if err = errors.Join(err, below.Close()); err != nil {
		return err
	}
	return f.user.Do(remove)
}

// Write writes a file in the place of what has its name.
func (f UserFolder) Write(name, text string, mode fs.FileMode) error {
	err := f.open(func() error {
		above, err := makeIn(f.root, filepath.Dir(name))
		if err != nil {
			return err
		}
		return errors.Join(writeHere(above, filepath.Base(name), text, mode), above.Close())
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(f.name, name), err)
	}
	return nil
}

// New makes a file in the place of what has the name.
func (f UserFolder) New(name string) (file *os.File, err error) {
	err = f.open(func() error {
		if err := f.root.RemoveAll(name); err != nil {
			return err
		}
		file, err = f.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		return err
	})
	return file, err
}

// open has something done in the folder, also where its process has closed it to itself.
func (f UserFolder) open(do func() error) error {
	return f.user.Do(func() error {
		err := do()
		if errors.Is(err, fs.ErrPermission) {
			reopen(f.root)
			err = do()
		}
		return err
	})
}

// Disarm is Disarm of the folder.
func (f UserFolder) Disarm(own func(uid int) bool) error {
	return f.user.Do(func() error { return Disarm(f.root, own) })
}

// View has the folder read as Tree shows it, with the user's rights. read starts no goroutine that reads.
func (f UserFolder) View(read func(fs.FS) error) error {
	return f.user.Do(func() error { return read(Tree(f.root)) })
}

// ViewHost has a folder of this machine read with the user's rights, links to elsewhere included. read starts no
// goroutine that reads.
func (u User) ViewHost(dir string, read func(fs.FS) error) error {
	return u.Do(func() error { return read(hostTree{dir, u}) })
}

// OwnerOf is the user that a folder belongs to.
func OwnerOf(folder *os.Root) (User, error) {
	info, err := folder.Stat(".")
	if err != nil {
		return User{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return User{}, errors.ErrUnsupported
	}
	return As(&plan.UserFacts{UID: int(st.Uid), GID: int(st.Gid)}), nil
}

// folder opens a folder for a user: truth, its path without links, lies within the reach. No link leads out of the
// reach, also one that appears meanwhile.
func (r reach) folder(truth, name string, user User) (UserFolder, error) {
	rest, err := filepath.Rel(r.real, truth)
	if err != nil {
		return UserFolder{}, err
	}
	top, err := unix.Open(r.real, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return UserFolder{}, &fs.PathError{Op: "open", Path: r.name, Err: err}
	}
	defer unix.Close(top)
	in := UserFolder{name: name, user: user}
	err = user.Do(func() (err error) { in.root, err = openBeneath(top, rest); return err })
	if err != nil {
		return UserFolder{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return in, nil
}

// openBeneath opens a folder in the folder top, through folders that the user may pass and not list, too.
func openBeneath(top int, name string) (*os.Root, error) {
	fd, err := unix.Openat2(top, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil && !hasOpenat2() {
		root, err := openFD(top)
		if err != nil {
			return nil, err
		}
		in, err := root.OpenRoot(name)
		return in, errors.Join(err, root.Close())
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return openFD(fd)
}

// openFD opens a folder that is open, without its path.
func openFD(fd int) (*os.Root, error) { return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(fd)) }
