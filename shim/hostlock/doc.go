// Package hostlock is a lock among the agents of a host, of all its users, that cannot go stale.
//
// A Lock is an abstract unix socket (unix(7)) that it owns until Release; the kernel releases it when its holder ends.
// It excludes within one network namespace, and never waits: Take fails at once while another process has the lock.
// A program that is started with Lock.Start has the lock at once, so that nobody comes between.
// Ports, GPUs, cgroups, work folders, instances, shared checkpoint folders and the apps of `muster slider` are claimed
// with it.
package hostlock
