package cgroup

// Limits are what a cgroup holds its processes to; 0: no limit, unless said otherwise.
type Limits struct {
	Memory int64 // bytes of memory, page cache included
	// High is where the kernel begins to reclaim and to slow down, in bytes; cgroup v2 only.
	High int64
	Swap int64 // bytes beside Memory; 0: none, when Memory is set
	// Group kills all processes together when one of them is killed for memory; cgroup v2 only.
	Group bool
	// CPU is the share, in cores; with Hard also a ceiling.
	CPU  int
	Hard bool
	Pids int64 // processes and threads
	// Devices are all that may be used beside the standard ones and pseudo terminals. Nil asks for no device list at
	// all; an empty list allows the standard ones only.
	Devices []Device
	// Everywhere asks for a cgroup in the hierarchies without a limit too, on v1: libcontainer joins all that there
	// are.
	Everywhere bool
}

// Device is a device node that may be used.
type Device struct {
	Path         string // on the host: /dev/nvidia0
	Type         rune   // c or b
	Major, Minor int64  // of the node; -1 is any
	Access       string // of r, w, m
}
