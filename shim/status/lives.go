package status

import (
	"errors"
	"syscall"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// ProcessLives tells whether a process of this host runs; a zombie does not.
func ProcessLives(pid int) bool {
	if pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	s, err := proc.Host{}.Stat(pid)
	return err != nil || s.Alive() // what cannot be read is not known to have ended
}
