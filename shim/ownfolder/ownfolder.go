package ownfolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// passage is the mode of root's folders: users find out whether a name that they know is there, and no more.
	passage = 0o711
	private = 0o700
)

// Make makes the folder of the first name in above, that of the second in it, and so on, or checks those that
// are there.
func Make(above string, names ...string) error {
	mode := uint32(private)
	if os.Geteuid() == 0 {
		mode = passage
	}
	at, err := open(unix.AT_FDCWD, above)
	if err == nil {
		if err = checkAbove(at); err != nil {
			err = errors.Join(err, unix.Close(at))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", above, err)
	}
	for i, name := range names {
		next, err := makeOne(at, name, mode)
		if err = errors.Join(err, unix.Close(at)); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(above, filepath.Join(names[:i+1]...)), err)
		}
		at = next
	}
	return unix.Close(at)
}

func open(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// checkAbove refuses a folder in which another user could rename ours.
func checkAbove(fd int) error {
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return err
	}
	if is.Uid != 0 && int(is.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to uid %d", is.Uid)
	}
	if Writable(is) && is.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("others may write to it (mode %04o)", is.Mode&0o7777)
	}
	return nil
}

// makeOne makes a folder that is this user's alone, or opens it, and mends its mode.
func makeOne(at int, name string, mode uint32) (int, error) {
	if err := unix.Mkdirat(at, name, mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	fd, err := open(at, name)
	if err != nil {
		return -1, err
	}
	var is unix.Stat_t
	err = unix.Fstat(fd, &is)
	switch {
	case err != nil:
	case int(is.Uid) != os.Geteuid():
		err = fmt.Errorf("belongs to uid %d", is.Uid)
	case Writable(is): // what others have put there stays
		err = fmt.Errorf("others may write to it (mode %04o)", is.Mode&0o7777)
	case is.Mode&mode != mode || mode == private && is.Mode&0o077 != 0:
		err = unix.Fchmod(fd, mode)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
