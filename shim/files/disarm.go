package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Disarm takes from what a process has left in a folder the rights that would outlive the process: set-user-ID and
// set-group-ID bits, file capabilities, device nodes. No link is followed. An agent that is not root does nothing:
// other users leave nothing that is root's. Files of users who are not its own stay as they are; own is nil where all
// in the folder is the process's. A folder that is too deep to be looked into is closed to all but its owner.
func Disarm(folder *os.Root, own func(uid int) bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var all error
	err := fs.WalkDir(folder.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		deep := err == nil && e.IsDir() && tooDeep(path)
		switch {
		case deep:
			err = shut(folder, path, own)
		case err == nil:
			err = disarm(folder, path, own)
		}
		if !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			all = errors.Join(all, err)
		}
		if deep {
			return fs.SkipDir
		}
		return nil
	})
	return errors.Join(all, err)
}

// armed are the bits by which a file gives its owner's or group's rights.
const armed = fs.ModeSetuid | fs.ModeSetgid

// deepest is how many folders below a process's own the agent goes down. Each costs a path that is longer than the
// last: thousands of them would cost the agent hours, and the host its memory.
const deepest = 256

func tooDeep(path string) bool { return strings.Count(path, "/") >= deepest }

// shut closes a folder to all but its owner.
func shut(folder *os.Root, path string, own func(uid int) bool) error {
	dir, err := folder.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	info, err := dir.Stat()
	if err == nil && (own == nil || own(int(ownerOf(info).Uid))) {
		err = dir.Chmod(0o700)
	}
	return errors.Join(err, dir.Close())
}

func disarm(folder *os.Root, path string, own func(uid int) bool) error {
	info, err := folder.Lstat(path)
	switch {
	case err != nil:
		return err
	case own != nil && !own(int(ownerOf(info).Uid)):
		return nil
	case info.Mode()&fs.ModeDevice != 0:
		return folder.Remove(path)
	case !info.Mode().IsRegular(): // one that nobody may execute counts: its owner may let others later
		return nil
	case info.Mode()&armed != 0 && hasOtherNames(info): // elsewhere the file may be the host's
		return folder.Remove(path)
	}
	file, err := folder.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) && info.Mode()&(armed|0o111) == 0 {
		return nil // of a network filesystem on which root is nobody: it stores no capabilities
	}
	if err != nil {
		return err
	}
	return errors.Join(disarmFile(file, info), file.Close())
}

// disarmFile is disarm of an open file, unless it has taken the place of the one that was looked at.
func disarmFile(file *os.File, was fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil || !os.SameFile(was, info) || hasOtherNames(info) {
		return err
	}
	if info.Mode()&armed != 0 {
		err = file.Chmod(info.Mode().Perm())
	}
	// Asked first: who is root of a user namespace alone may not so much as ask to remove what is not there.
	const capability = "security.capability"
	switch _, lacks := unix.Fgetxattr(int(file.Fd()), capability, nil); {
	case errors.Is(lacks, unix.ENODATA), errors.Is(lacks, unix.ENOTSUP):
	case lacks != nil:
		err = errors.Join(err, lacks)
	default:
		err = errors.Join(err, unix.Fremovexattr(int(file.Fd()), capability))
	}
	return err
}
