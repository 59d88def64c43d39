// Package proc reads what the kernel says of processes in /proc, and ends processes by it: which exist and descend from
// whom, what they hold of memory, whether one that was recorded still lives, and what SIGKILL did not end. A number
// alone names no process: it counts with the start, the boot and the pid namespace that it belongs to.
//
// It owns nothing but the pidfds that it opens and closes. It promises that no process is signalled but the one that
// was looked at. The engines (package sandbox) call it, the agent asks it about other agents of its host, and tests
// give it a folder in place of /proc.
package proc
