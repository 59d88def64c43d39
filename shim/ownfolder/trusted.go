package ownfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Trusted refuses a file or folder that users other than root and the one of this id have made, may write to, or could
// put another in the place of.
func Trusted(path string, uid int) error {
	var is unix.Stat_t
	if err := unix.Stat(path, &is); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if is.Uid != 0 && int(is.Uid) != uid && !beyond(is.Uid) {
		want := "root"
		if uid != 0 {
			want = fmt.Sprintf("root or uid %d", uid)
		}
		return fmt.Errorf("%s belongs to uid %d, want %s", path, is.Uid, want)
	}
	if Writable(is) {
		return fmt.Errorf("%s may be written by others (mode %04o): chmod go-w", path, is.Mode&0o7777)
	}
	return Fixed(path, uid)
}

// Own refuses a path that does not belong to this process's user, from a folder above it down, or that others could put
// another in the place of. What is not there is nobody's; a link is refused.
func Own(top, path string) error {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		var is unix.Stat_t
		err := unix.Lstat(at, &is)
		folder := is.Mode&unix.S_IFMT == unix.S_IFDIR
		switch {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return &fs.PathError{Op: "stat", Path: at, Err: err}
		case is.Mode&unix.S_IFMT == unix.S_IFLNK:
			return fmt.Errorf("%s is a link", at)
		case int(is.Uid) != os.Geteuid():
			return fmt.Errorf("%s belongs to uid %d, want uid %d", at, is.Uid, os.Geteuid())
		case Writable(is) && (!folder || is.Mode&unix.S_ISVTX == 0):
			return fmt.Errorf("%s may be written by others (mode %04o): chmod go-w", at, is.Mode&0o7777)
		}
		if len(at) <= len(filepath.Clean(top)) {
			return nil
		}
	}
}
