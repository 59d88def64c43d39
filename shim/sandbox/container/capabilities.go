package container

import (
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// capabilityNames are those of the first process: containerd's default set, and SYS_RESOURCE, by which the guard raises
// resource limits and lowers the OOM score for the process it starts. The guard drops it from that process.
var capabilityNames = []struct {
	number int
	name   string
}{
	{unix.CAP_CHOWN, "CAP_CHOWN"},
	{unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
	{unix.CAP_FOWNER, "CAP_FOWNER"},
	{unix.CAP_FSETID, "CAP_FSETID"},
	{unix.CAP_KILL, "CAP_KILL"},
	{unix.CAP_SETGID, "CAP_SETGID"},
	{unix.CAP_SETUID, "CAP_SETUID"},
	{unix.CAP_SETPCAP, "CAP_SETPCAP"},
	{unix.CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE"},
	{unix.CAP_NET_RAW, "CAP_NET_RAW"},
	{unix.CAP_SYS_CHROOT, "CAP_SYS_CHROOT"},
	{unix.CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE"},
	{unix.CAP_MKNOD, "CAP_MKNOD"},
	{unix.CAP_AUDIT_WRITE, "CAP_AUDIT_WRITE"},
	{unix.CAP_SETFCAP, "CAP_SETFCAP"},
}

// capabilities are those of capabilityNames that are among has: a process can give only what it has. Nothing is
// inheritable, so that a program with file capabilities gains none by it (CVE-2022-24769).
func capabilities(has uint64) *configs.Capabilities {
	var names []string
	for _, c := range capabilityNames {
		if has&(1<<c.number) != 0 {
			names = append(names, c.name)
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
