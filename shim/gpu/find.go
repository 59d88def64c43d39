package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
)

// FindHelper is the path of muster-gpu: beside this program, else in PATH; nil: there is none.
func FindHelper() *string {
	const name = "muster-gpu"
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return &path
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	return &path
}
