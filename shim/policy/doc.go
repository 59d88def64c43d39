// Package policy reads what the operator of a host permits and forbids: one file of JSON with
// comments, by default /etc/muster/policy.json.
//
// It owns no state: Read gives a value, checked whole, and nobody writes the file. A definition or a command line
// can widen nothing of it. It can widen the default filter of system calls and a root's capabilities, by name. A
// file that another user than root or the agent's own could have written is refused, as are the files that it
// names (a seccomp filter, public keys).
//
// The flags of the command line read it, for agents, runs, dry runs and doctor; package verify examines it. openapp
// asks the value which packages may run, the agent for mounts, root, seccomp and image registries.
package policy
