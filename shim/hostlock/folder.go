package hostlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	folderName = "lock"
	rootFolder = "/run/muster/" + folderName
	// passage is the mode of a folder in which others find out whether a name that they know is there, and no more.
	passage = 0o711
	private = 0o700
)

// ownFolder makes the folder of this user's locks, or checks it. It is the first of the candidates that is this user's
// alone: which one does not depend on anything that another user may do while an earlier one is there.
func ownFolder() (string, error) {
	var refused error
	for _, dir := range candidates(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR")) {
		err := makeOwn(dir)
		if err == nil {
			return filepath.Join(dir, folderName), nil
		}
		refused = errors.Join(refused, err)
	}
	return "", fmt.Errorf("no folder for locks of uid %d: set XDG_RUNTIME_DIR to a folder of this user's own, of mode "+
		"0700: %w", os.Geteuid(), refused)
}

// candidates are folders for a user's locks. The environment comes late: agents of one user may differ in it.
func candidates(uid int, runtimeDir string) []string {
	var dirs []string
	if uid == 0 {
		dirs = append(dirs, filepath.Dir(rootFolder))
	} else {
		dirs = append(dirs, fmt.Sprintf("/run/user/%d/muster", uid))
	}
	if runtimeDir != "" {
		dirs = append(dirs, filepath.Join(runtimeDir, "muster"))
	}
	for _, shared := range []string{"/tmp", "/dev/shm"} {
		dirs = append(dirs, fmt.Sprintf("%s/muster-%d", shared, uid))
	}
	return dirs
}

// makeOwn makes the folder and `lock` in it. Every step is taken from the open folder above, without links.
func makeOwn(dir string) error {
	mode := uint32(private)
	if os.Geteuid() == 0 {
		mode = passage // users see by it that root has a lock
	}
	above, err := openFolder(unix.AT_FDCWD, filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Dir(dir), err)
	}
	defer unix.Close(above)
	if err := checkAbove(above); err != nil {
		return fmt.Errorf("%s: %w", filepath.Dir(dir), err)
	}
	own, err := makeFolder(above, filepath.Base(dir), mode)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	defer unix.Close(own)
	locks, err := makeFolder(own, folderName, mode)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, folderName), err)
	}
	return unix.Close(locks)
}

func openFolder(at int, name string) (int, error) {
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
	if is.Mode&0o022 != 0 && is.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("others may write to it (mode %04o)", is.Mode&0o7777)
	}
	return nil
}

// makeFolder makes a folder that is this user's alone, or opens it, and mends its mode.
func makeFolder(at int, name string, mode uint32) (int, error) {
	if err := unix.Mkdirat(at, name, mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	fd, err := openFolder(at, name)
	if err != nil {
		return -1, err
	}
	var is unix.Stat_t
	err = unix.Fstat(fd, &is)
	switch {
	case err != nil:
	case int(is.Uid) != os.Geteuid():
		err = fmt.Errorf("belongs to uid %d", is.Uid)
	case is.Mode&0o022 != 0: // what others have put there stays
		err = fmt.Errorf("others may write to it (mode %04o)", is.Mode&0o7777)
	case is.Mode&mode != mode || mode == private && is.Mode&0o077 != 0:
		err = unix.Fchmod(fd, mode)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
