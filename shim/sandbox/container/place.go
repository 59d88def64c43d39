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

// What a start makes beside the writable layers is a score of empty folders and a few small files, gone at the end. On a
// disk that costs more than all mounts together: ext4 does not give a number that was just freed again, and looks
// long for others. So it lies in memory, where the host has a filesystem for that; else in the container's folder.

// placeOf is where the folder of a container keeps its part in memory, in the filesystem base. The name is the same at
// each start, so that it is found again without a record.
func memoryDirOf(dir, base string) string {
	digest := sha256.Sum256([]byte(dir))
	return filepath.Join(base, fmt.Sprintf("muster-%x", digest[:8]))
}

// bases are filesystems that are memory on most hosts, those first that are ours alone.
func memoryFilesystems() []string {
	return []string{"/run", os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"}
}

// makePlace makes the folder in memory, or says that dir itself must do.
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
		case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist), errors.Is(err, unix.EROFS), errors.Is(err, unix.ENOSPC):
			continue
		default:
			return "", err
		}
	}
	return dir, nil
}

// places are the folders in memory that a container in dir has left, one at most unless the environment has changed.
func memoryDirs(dir string) []string {
	var found []string
	for _, base := range memoryFilesystems() {
		place := memoryDirOf(dir, base)
		var is unix.Stat_t
		if base != "" && unix.Lstat(place, &is) == nil && is.Mode&unix.S_IFMT == unix.S_IFDIR && int(is.Uid) == os.Geteuid() {
			found = append(found, place)
		}
	}
	return found
}
