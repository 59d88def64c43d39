package sandbox

import (
	"sync"

	"golang.org/x/sys/unix"
)

// everybody is the umask under which all may pass through folders, as users do through those that make a container up.
const everybody = 0o022

// umask is one for all threads: the first start that needs an open one opens it, and the last one restores it.
var umask struct {
	sync.Mutex
	users int
	own   uint32
}

// openUmask opens this process's umask until restore is called, and gives its own.
func openUmask() (own uint32, restore func()) {
	umask.Lock()
	defer umask.Unlock()
	if umask.users++; umask.users == 1 {
		umask.own = uint32(unix.Umask(everybody)) //nolint:gosec // nine bits
	}
	return umask.own, func() {
		umask.Lock()
		defer umask.Unlock()
		if umask.users--; umask.users == 0 {
			unix.Umask(int(umask.own))
		}
	}
}
