// Package process runs the process of one instance: starts it, stops it, restarts it beside its side processes, and
// says what its end meant.
//
// It owns the guard that holds the process (and parks another where that one is lost), the attempt under way, the
// commands of the package's scripts, the side processes, and what was seen to go wrong from outside. Its goroutines end
// with Close. It promises that an attempt is reported over once only, and only when nothing of it is left.
//
// The machine's effects on the process come in by Do, in the order of asking; what happens goes out as events of the
// machine. Package shim makes a Process when an instance has been prepared, and the agent's API asks it.
package process
