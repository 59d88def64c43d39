// Package policy reads what the operator of a host permits and forbids: one JSON file, by default
// /etc/muster/policy.json.
//
// It owns no state: Read gives a value, checked whole, and nobody writes the file. A definition or a command line can
// widen nothing of it. A file that another user than root or the agent's own could have written is refused, as are the
// files that it names (a seccomp filter, public keys).
//
// Callers: openapp (which packages may run), the agent (mounts, root, seccomp, image registries), and the verbs run,
// doctor and package verify.
package policy
