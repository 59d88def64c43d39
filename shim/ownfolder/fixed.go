package ownfolder

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Fixed refuses a path that users other than root and the one of this id could make lead elsewhere: by renaming a
// folder above it, or by a link of theirs. For root all folders above count; for an ordinary user those up to one of
// root's.
func Fixed(path string, uid int) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for at := path; at != "/"; at = filepath.Dir(at) {
		if err := fixedLink(at, uid); err != nil {
			return err
		}
	}
	truth, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, path := range []string{path, truth} {
		if err := fixedBelow(path, uid); err != nil {
			return err
		}
	}
	return nil
}

// FixedIn is Fixed for what is not in a folder yet.
func FixedIn(dir, name string, uid int) error {
	if err := Fixed(dir, uid); err != nil {
		return err
	}
	truth, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return fixedBelow(filepath.Join(truth, name), uid)
}

// fixedLink refuses a link of another user's.
func fixedLink(path string, uid int) error {
	var is unix.Stat_t
	if err := unix.Lstat(path, &is); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if is.Mode&unix.S_IFMT == unix.S_IFLNK && is.Uid != 0 && int(is.Uid) != uid && !beyond(is.Uid) {
		return fmt.Errorf("link %s belongs to uid %d, who could lead it elsewhere: name its target", path, is.Uid)
	}
	return nil
}

// fixedBelow looks at the folders above a path.
func fixedBelow(path string, uid int) error {
	for above := filepath.Dir(path); above != "/"; above = filepath.Dir(above) {
		var is unix.Stat_t
		if err := unix.Stat(above, &is); err != nil {
			return &fs.PathError{Op: "stat", Path: above, Err: err}
		}
		roots, sticky := is.Uid == 0 || beyond(is.Uid), is.Mode&unix.S_ISVTX != 0
		if roots && uid != 0 {
			return nil
		}
		if !roots && int(is.Uid) != uid || Writable(is) && !sticky && !readOnly(above) {
			return fmt.Errorf("%s lies in %s, which belongs to uid %d (mode %04o): others could put another in its "+
				"place; name one in a folder of root's or of the agent's own", path, above, is.Uid, is.Mode&0o7777)
		}
	}
	return nil
}

// readOnly tells whether a folder is mounted read-only: Kubernetes gives ConfigMaps to pods so, with mode 0777.
func readOnly(dir string) bool {
	var is unix.Statfs_t
	return unix.Statfs(dir, &is) == nil && is.Flags&unix.ST_RDONLY != 0
}

// Writable tells whether others than its owner, and root, may write to a file or folder. A user's own group has nobody
// else in it where it has the user's number.
func Writable(is unix.Stat_t) bool {
	bits := is.Mode & 0o022
	if is.Gid == 0 || is.Gid == is.Uid {
		bits &^= 0o020
	}
	return bits != 0
}
