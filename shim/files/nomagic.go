package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/file"
)

// processFiles are the files of this machine as the app's process has them. The agent's thread has that user's rights,
// and is still the agent for /proc: /proc/self/cwd and /proc/self/fd would lead past folders that are closed to the
// user, as would a path from the agent's own folder.
type processFiles struct{ file.Machine }

// machine are the files of this machine for the user.
func (u User) machine() store.Store {
	if u.limited() {
		return file.New(processFiles{})
	}
	return file.New(file.Machine{})
}

// read is ReadHost for the user.
func (u User) read(path string, most int64) (string, error) {
	if !u.limited() {
		return ReadHost(path, most)
	}
	f, err := openNoMagic(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readSmall(f, path, most)
}

// folder opens a folder of this machine for the user, whose rights differ from the agent's.
func (u User) folder(path string) (UserFolder, error) {
	in := UserFolder{name: path, user: u}
	err := u.Do(func() error {
		f, err := openNoMagic(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		in.root, err = openFD(int(f.Fd()))
		return err
	})
	return in, err
}

// OpenFile is os.OpenFile without magic links.
func (processFiles) OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return openNoMagic(path, flag, perm)
}

// Stat is os.Stat without magic links.
func (processFiles) Stat(path string) (fs.FileInfo, error) { return statNoMagic(path, 0) }

// Lstat is os.Lstat without magic links.
func (processFiles) Lstat(path string) (fs.FileInfo, error) {
	return statNoMagic(path, unix.O_NOFOLLOW)
}

func openNoMagic(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fault.Definition(&fs.PathError{Op: "open", Path: path, Err: errRelative})
	}
	how := unix.OpenHow{Flags: uint64(flag) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if flag&os.O_CREATE != 0 {
		how.Mode = uint64(perm.Perm())
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil && !hasOpenat2() {
		if truth, err := filepath.EvalSymlinks(path); err == nil {
			path = truth
		}
		return os.OpenFile(path, flag, perm)
	}
	if errors.Is(err, unix.ELOOP) {
		err = errMagic
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// hasOpenat2 tells whether openat2(2) can be called: a kernel before 5.6 does not have it, nor does an older filter
// permit it. It is asked once, about a folder that is there: what a definition names decides nothing.
var hasOpenat2 = sync.OnceValue(func() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
})

var (
	errRelative = errors.New("not an absolute path")
	errMagic    = errors.New("a link in a circle, or one of /proc that is the agent's own: name the file itself")
)

func statNoMagic(path string, flag int) (fs.FileInfo, error) {
	f, err := openNoMagic(path, unix.O_PATH|flag, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}
