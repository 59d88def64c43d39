package cachedir

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Default is where what is fetched is kept for the next run of this user: XDG_CACHE_HOME or the home's. A service may
// have no home, and a container of YARN's has one that it may not write to (yarn.nodemanager.user-home-dir, /home/). In
// such a container it is the application's own folder on this host, which its containers share and YARN takes away.
func Default() string {
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "muster")
	}
	if home, err := os.UserHomeDir(); err == nil {
		if dir := filepath.Join(home, ".cache", "muster"); canMake(dir) {
			return dir
		}
	}
	if local, _, _ := strings.Cut(os.Getenv("LOCAL_DIRS"), ","); filepath.IsAbs(local) && canMake(local) &&
		trusted(local) == nil {
		return filepath.Join(local, "muster-cache")
	}
	return filepath.Join(os.TempDir(), "muster-cache-"+strconv.Itoa(os.Geteuid()))
}

// canMake tells whether this user may make a folder, or write into it where it is.
func canMake(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == "/" {
			return unix.Access(dir, unix.W_OK|unix.X_OK) == nil
		}
	}
}
