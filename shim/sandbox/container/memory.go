package container

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A start makes some twenty empty folders and a few small files beside the writable layers, and removes them at the
// end. On a disk that costs more than all mounts together: ext4 does not reuse an inode number that was just freed, and
// searches long for others. So they lie in memory where the host has a filesystem for that, else in the container's
// folder.

// memoryDirOf is the folder in memory of a container's folder, in the filesystem base. The name is the same at each
// start, so that the folder is found again without a record.
func memoryDirOf(dir, base string) string {
	digest := sha256.Sum256([]byte(dir))
	return filepath.Join(base, fmt.Sprintf("muster-%x", digest[:8]))
}

// memoryFilesystems are filesystems that are in memory on most hosts, those first that no other user writes to.
func memoryFilesystems() []string {
	return []string{"/run", os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"}
}

// makeMemoryDir makes the folder in memory, or returns dir itself.
func makeMemoryDir(dir string) (string, error) {
	for _, base := range memoryFilesystems() {
		var in unix.Statfs_t
		if base == "" || unix.Statfs(base, &in) != nil || in.Type != unix.TMPFS_MAGIC {
			continue
		}
		place := memoryDirOf(dir, base)
		switch err := os.Mkdir(place, 0o700); {
		case err == nil:
			return filepath.EvalSymlinks(place)
		// Another user may have taken the name where everybody may write.
		case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist), errors.Is(err, unix.EROFS),
			errors.Is(err, unix.ENOSPC):
			continue
		default:
			return "", err
		}
	}
	return dir, nil
}

// memoryDirs are the folders in memory that a container in dir has left: one at most, unless the environment has
// changed.
func memoryDirs(dir string) []string {
	var found []string
	for _, base := range memoryFilesystems() {
		place := memoryDirOf(dir, base)
		var is unix.Stat_t
		if base != "" && unix.Lstat(place, &is) == nil && is.Mode&unix.S_IFMT == unix.S_IFDIR &&
			int(is.Uid) == os.Geteuid() {
			found = append(found, place)
		}
	}
	return found
}
