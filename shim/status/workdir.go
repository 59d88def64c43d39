package status

import (
	"fmt"
	"os"
	"path/filepath"
)

// DefaultWorkDir is ${XDG_STATE_HOME:-~/.local/state}/muster/<app>.
func DefaultWorkDir(app string) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("work folder: %w; give --work-dir", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "muster", app), nil
}
