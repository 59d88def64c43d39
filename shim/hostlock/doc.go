// Package hostlock is a lock among the agents of a host that cannot go stale and that another user cannot take away.
//
// A Lock is a file that its agent holds by flock(2) until Release; the kernel releases it when its holder
// ends, so a file that is left behind is no lock. Files of root are in /run/muster/lock, those of another user
// in a folder of that user's own: nobody else can open them, for who can open a file can also lock it. Take
// never waits: it fails at once while another agent of the same user has the lock, or while root has it (a
// user reads that from /proc/locks).
//
// An agent also announces its lock by an abstract unix socket of that name, for agents of other users, and for those
// that do not see its files. Anybody may bind such a name, so the kernel is asked who did: an announcement of the same
// user or of root is a lock, one of another user is only a hint that Lock.Other tells. Ports and GPUs heed it.
//
// A program that is started with Lock.Start has the lock at once, so that nobody comes between. Ports, GPUs, cgroups,
// work folders, instances, shared checkpoint folders and the apps of `muster slider` are claimed with it.
package hostlock
