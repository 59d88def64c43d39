package sandbox

import "golang.org/x/sys/unix"

// Caps are capabilities (capabilities(7)), as 1 << CAP_*.
type Caps uint64

// DefaultCaps are those of a root's processes in every engine: what root needs to install software, change user
// and listen on a port below 1024. They are Docker's without four: NET_RAW reads what other programs send on the
// host's loopback, MKNOD and SETFCAP leave device nodes and privileged programs in the host's folders, AUDIT_WRITE
// writes to the host's audit log.
const DefaultCaps Caps = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FSETID | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE |
	1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_KILL

// within are the capabilities of asked that most permits; nil is no bound.
func within(asked, most *Caps) *uint64 {
	if asked == nil && most == nil {
		return nil
	}
	caps := ^uint64(0)
	for _, c := range []*Caps{asked, most} {
		if c != nil {
			caps &= uint64(*c)
		}
	}
	return &caps
}
