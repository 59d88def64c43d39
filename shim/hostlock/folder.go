package hostlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/shim/ownfolder"
)

const (
	folderName = "lock"
	rootFolder = "/run/muster/" + folderName
)

// ownFolder makes the folder of this user's locks, or checks it. It is the first of the candidates that is this user's
// alone: which one does not depend on anything that another user may do while an earlier one is there.
func ownFolder() (string, error) {
	var refused error
	for _, dir := range candidates(os.Geteuid(), os.Getenv("XDG_RUNTIME_DIR")) {
		err := ownfolder.Make(filepath.Dir(dir), filepath.Base(dir), folderName)
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
