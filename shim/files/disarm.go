package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Disarm takes from what a process has left in a folder the rights that would outlive the process: set-user-ID and
// set-group-ID bits, file capabilities, device nodes. No link is followed. An agent that is not root does nothing:
// other users leave nothing that is root's.
func Disarm(folder *os.Root) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var all error
	err := fs.WalkDir(folder.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = disarm(folder, path, e)
		}
		if !errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			all = errors.Join(all, err)
		}
		return nil
	})
	return errors.Join(all, err)
}

func disarm(folder *os.Root, path string, e fs.DirEntry) error {
	if e.Type()&fs.ModeDevice != 0 {
		return folder.Remove(path)
	}
	if !e.Type().IsRegular() {
		return nil
	}
	info, err := folder.Lstat(path)
	if err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|0o111) == 0 {
		return err
	}
	armed := info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0
	if armed && hasOtherNames(info) { // elsewhere the file may be the host's
		return folder.Remove(path)
	}
	file, err := folder.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if armed {
		err = file.Chmod(info.Mode().Perm())
	}
	if !hasOtherNames(info) {
		lost := unix.Fremovexattr(int(file.Fd()), "security.capability")
		if lost != nil && !errors.Is(lost, unix.ENODATA) && !errors.Is(lost, unix.ENOTSUP) {
			err = errors.Join(err, lost)
		}
	}
	return errors.Join(err, file.Close())
}
