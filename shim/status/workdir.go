package status

import (
	"fmt"
	"os"
	"path/filepath"
)

// rootHome is closed to the processes of an agent that is root: they are nobody on the host.
const rootHome = "/root"

// DefaultWorkDir is ${XDG_STATE_HOME:-~/.local/state}/muster/<app>; /var/lib/muster/apps/<app> instead of one in root's
// home.
func DefaultWorkDir(app string) (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); base != "" {
		return filepath.Join(base, "muster", app), nil
	}
	home, err := os.UserHomeDir()
	switch {
	case err != nil:
		return "", fmt.Errorf("work folder: %w; give --work-dir", err)
	case filepath.Clean(home) == rootHome && os.Geteuid() == 0:
		return filepath.Join("/var/lib/muster/apps", app), nil
	}
	return filepath.Join(home, ".local", "state", "muster", app), nil
}
