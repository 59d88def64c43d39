package consul

import (
	"time"

	"golang.org/x/sys/unix"
)

// boottime is the time since the machine booted. Unlike Go's own clock it counts suspended time, which the end of a
// session needs.
func boottime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("clock_gettime: " + err.Error()) // Linux has it since 2.6.39
	}
	return time.Duration(t.Nano())
}
