// Package sandbox confines and runs one process tree. In go a Spec and limits; out come events: the process started, it
// exited, nothing of it is left. The package knows no app, no gang and no registry.
//
// An Engine (process, cgroup, container) starts a guard (package guard) inside a boundary. The guard stands between the
// agent and the process: it owns the process, its logs and its death. The agent holds the other end of the guard's
// lifeline, so whatever happens to the agent, nothing of the process survives it. The guard is started early and waits;
// a start then costs one message. package cgroup makes every cgroup, package container knows libcontainer, package proc
// reads /proc.
//
// A Guard owns its process, boundary, sockets and goroutines; Close ends them all or names what does not die. The agent
// calls this package, and doctor asks it what the host permits.
//
// Everything a guard runs lives in sessions of its own. The agent's other helpers must not: after a guard's violent
// death that difference tells the guard's orphans from the agent's helpers (see Guard).
package sandbox
