package container

import (
	"strings"

	"github.com/moby/sys/capability"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// capabilities are those of the first process: of asked, and SYS_RESOURCE, by which the guard raises resource
// limits and lowers the OOM score for the process it starts, what is among has: a process can give only what it
// has. The guard drops SYS_RESOURCE from that process. Nothing is inheritable, so that a program with file
// capabilities gains none by it (CVE-2022-24769).
func capabilities(has, asked uint64) *configs.Capabilities {
	var names []string
	for _, c := range capability.ListKnown() {
		if (asked|1<<unix.CAP_SYS_RESOURCE)&has&(1<<c) != 0 {
			names = append(names, "CAP_"+strings.ToUpper(c.String()))
		}
	}
	return &configs.Capabilities{Bounding: names, Permitted: names, Effective: names}
}

// maskedPaths and readonlyPaths are those of containerd and moby: what they show is of the host.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
		"/sys/devices/virtual/powercap", "/sys/firmware",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)
