package sandbox

import (
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// Exit is how the main process ended: Code or Signal. Neither is set when the end was not seen: the guard was lost, or
// the process was adopted and its parent, which outlived it, got its status.
type Exit struct {
	Code    *int // its own code, nil when a signal ended it
	Signal  int  // 0: none
	At      time.Time
	Core    bool         // a core was dumped
	MaxRSS  int64        // bytes; of the largest process that it waited for, itself included
	Usage   cgroup.Usage // what the boundary counted in this start
	Message string
	// Starter says that this is the exit of a starter that was held when it was ended by a kill, or its guard was lost:
	// it says nothing of what the starter left behind.
	Starter bool
}

func exitOf(status syscall.WaitStatus, at time.Time, maxRSS int64) Exit {
	e := Exit{At: at, MaxRSS: maxRSS}
	if status.Signaled() {
		e.Signal, e.Core = int(status.Signal()), status.CoreDump()
		e.Message = "ended by " + signalName(status.Signal())
		return e
	}
	code := status.ExitStatus()
	e.Code, e.Message = &code, "exit code "+strconv.Itoa(code)
	return e
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}
