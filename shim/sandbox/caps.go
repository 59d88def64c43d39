package sandbox

import "golang.org/x/sys/unix"

// Caps are capabilities (capabilities(7)), as 1 << CAP_*.
type Caps uint64

// defaultCaps are those of containerd's default container (defaultUnixCaps in its pkg/oci/spec.go), which are Docker's
// too: what root needs to install software, change user and listen on a port below 1024, and nothing that
// reaches the kernel or its devices.
const defaultCaps Caps = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FSETID | 1<<unix.CAP_FOWNER |
	1<<unix.CAP_MKNOD | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETFCAP |
	1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_KILL |
	1<<unix.CAP_AUDIT_WRITE

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
