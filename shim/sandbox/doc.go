// Package sandbox confines and runs one process tree. In go a Spec and limits; out come events: it
// started, it exited, nothing of it is left. It knows no app, no gang and no registry.
//
// Between the agent and the process stands the guard (package guard): it owns the process, its logs
// and its death. The agent holds the other end of the guard's lifeline, so that whatever happens to
// the agent, nothing of the process survives it. A guard is parked before it is needed; a start then
// costs one message.
//
// Everything a guard runs lives in sessions of its own. The agent's other helpers must not: after a
// guard's violent death that difference tells its orphans from them (see Guard).
package sandbox
