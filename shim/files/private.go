package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/ownfolder"
)

// othersWrite are the mode bits of a folder in which others than its owner make and rename files.
const othersWrite = 0o022

// MakePrivate makes a folder that its owner alone may enter, and those above it. One that is there keeps its mode.
func MakePrivate(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}

// Private refuses a folder in which another user could put something in the place of an agent's files: one that belongs
// to another user, or that others may write to, or that the owner of a folder above, or who may write there, could put
// another in the place of. For root all folders above count, and links on the way; for an ordinary user those up to one
// of root's.
func Private(dir string) error {
	if err := mine(dir); err != nil {
		return err
	}
	if err := ownfolder.Fixed(dir, os.Geteuid()); err != nil {
		return fmt.Errorf("folder %s: %w", dir, err)
	}
	return nil
}

// mine refuses a folder that belongs to another user, or that others may write to.
func mine(dir string) error {
	var is unix.Stat_t
	if err := unix.Stat(dir, &is); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	switch {
	case is.Mode&unix.S_IFMT != unix.S_IFDIR:
		return &fs.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	case int(is.Uid) != os.Geteuid():
		return fmt.Errorf("folder %s belongs to uid %d (mode %04o), want uid %d, who runs the agent: name another, or "+
			"chown it", dir, is.Uid, is.Mode&0o7777, os.Geteuid())
	case ownfolder.Writable(is):
		return fmt.Errorf("folder %s may be written by others (uid %d, mode %04o): chmod go-w, or name another", dir,
			is.Uid, is.Mode&0o7777)
	}
	return nil
}

// Laid refuses a folder of the agent's in one of its launcher's that belongs to another user, that others may write to,
// or that is a link: muster makes none there. What is not there is nobody's.
func Laid(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("folder %s is a link, which muster has not made: remove it", dir)
	}
	return mine(dir)
}

// OpenToOthers tells whether others than the owner of a folder may write to it.
func OpenToOthers(dir string) bool {
	var is unix.Stat_t
	return unix.Stat(dir, &is) == nil && ownfolder.Writable(is)
}

// Tighten takes a folder that a launcher has made for this agent alone from others: the right to write to it, and where
// the agent is root, the folder itself. Nomad gives a task's folder to nobody (uid 65534), writable by all.
func Tighten(dir string) error {
	fail := func(act string, err error) error { return &fs.PathError{Op: act, Path: dir, Err: err} }
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail("open", err)
	}
	defer unix.Close(fd)
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return fail("stat", err)
	}
	if os.Geteuid() == 0 && is.Uid != 0 {
		if err := unix.Fchown(fd, 0, 0); err != nil {
			return fail("chown", err)
		}
		is.Uid, is.Gid = 0, 0
	}
	if int(is.Uid) == os.Geteuid() && ownfolder.Writable(is) {
		if err := unix.Fchmod(fd, is.Mode&0o777&^othersWrite); err != nil {
			return fail("chmod", err)
		}
	}
	return mine(dir)
}

// LetPass lets a process's user pass through a folder of the agent's to what is the user's in it. Where the folder's
// group is another user's already, whoever knows a name in it may pass.
func (u User) LetPass(dir string) error {
	var is unix.Stat_t
	if !u.limited() {
		return nil
	}
	if err := unix.Stat(dir, &is); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	mode := os.FileMode(is.Mode & 0o777)
	if mode, gid := u.admit(mode, int(is.Gid), 0o001); gid >= 0 {
		return errors.Join(os.Chown(dir, -1, gid), os.Chmod(dir, mode))
	}
	return nil
}

// LetRead lets a process's user read what lies in a folder of the agent's, as the agent itself may, and run it.
func (u User) LetRead(folder *os.Root) error {
	if !u.limited() {
		return nil
	}
	return fs.WalkDir(folder.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := folder.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return err
		}
		if mode, gid := u.admit(info.Mode().Perm(), int(ownerOf(info).Gid), info.Mode().Perm()>>6&0o005); gid >= 0 {
			return errors.Join(folder.Lchown(path, -1, gid), folder.Chmod(path, mode))
		}
		return nil
	})
}

// admit is the mode and the group by which the user has those rights, given as the bits of others, to what has this
// mode and group; -1: it has them.
func (u User) admit(mode fs.FileMode, gid int, rights fs.FileMode) (fs.FileMode, int) {
	mine := gid == u.facts.GID
	switch {
	case mode&rights == rights || mine && mode&(rights<<3) == rights<<3:
		return mode, -1
	case gid == 0 || mine:
		return mode | rights<<3, u.facts.GID
	}
	return mode | rights | rights<<3, gid
}
