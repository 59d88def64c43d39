package cachedir

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"
)

// Open makes the folder name of the cache dir, for its owner alone, with folders in it, and returns its path without
// links. A folder is refused that belongs to another user, or that another user could replace.
func Open(dir, name string, folders ...string) (string, error) {
	root, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("open cache: %w", err)
	}
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			return "", fmt.Errorf("open cache: %w", err)
		}
	}
	if root, err = filepath.EvalSymlinks(root); err != nil { // a link that is looked at now may lead elsewhere later
		return "", fmt.Errorf("open cache: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil {
		return "", fmt.Errorf("open cache: %w", &fs.PathError{Op: "stat", Path: root, Err: err})
	}
	if int(st.Uid) != os.Geteuid() {
		return "", fmt.Errorf("open cache %s: owner: got uid %d, want %d: that user could change what runs; name "+
			"another folder by XDG_CACHE_HOME", root, st.Uid, os.Geteuid())
	}
	if err := os.Chmod(root, 0o700); err != nil {
		return "", fmt.Errorf("open cache: %w", err)
	}
	if err := notOthers(filepath.Dir(root)); err != nil {
		return "", fmt.Errorf("open cache %s: %w: another user could replace it; name another folder by XDG_CACHE_HOME",
			root, err)
	}
	return root, nil
}

// unmapped is how a user namespace shows an owner that it has no number for, the host's root among them
// (user_namespaces(7)).
const unmapped = 65534

// InUserNamespace tells that numbers of users mean something else here than on the machine. The machine's own namespace
// maps each number to itself; so does one that root made for all of them, in which no owner is without a number.
func InUserNamespace() bool {
	numbers, err := user.CurrentProcessUIDMap()
	return err == nil && elsewhere(numbers) // a kernel without the file has no user namespaces
}

// elsewhere: a mapping that is not the machine's own; an empty one is of a namespace just made (user_namespaces(7)).
func elsewhere(numbers []user.IDMap) bool {
	return len(numbers) != 1 || numbers[0] != user.IDMap{ID: 0, ParentID: 0, Count: math.MaxUint32}
}

// trusted tells whether a folder exists that no user but root and the caller could replace; the error names who could.
func trusted(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return notOthers(dir)
}

// notOthers refuses a folder in which, or above which, another user than root and the caller could rename entries.
// Folders that all users may write to are fine when only owners may rename in them, as in /tmp. at has no links.
func notOthers(at string) error {
	for ; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return &fs.PathError{Op: "stat", Path: at, Err: err}
		}
		if st.Uid != 0 && int(st.Uid) != os.Geteuid() && (st.Uid != unmapped || !InUserNamespace()) {
			return fmt.Errorf("owner of %s: got uid %d, want %d or 0", at, st.Uid, os.Geteuid())
		}
		if st.Mode&unix.S_IWOTH != 0 && st.Mode&unix.S_ISVTX == 0 {
			return fmt.Errorf("mode of %s: got %#o, want one by which others may not write there", at, st.Mode&0o7777)
		}
		if at == "/" {
			return nil
		}
	}
}
