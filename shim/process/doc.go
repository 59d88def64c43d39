// Package process runs the process of one instance: starts it, stops it, restarts it beside its side processes, and
// says what its end meant.
//
// It owns the guard that holds the process (and starts another after a loss), the current attempt, the commands of the
// package's scripts, the side processes, and the causes of an end that were seen from outside. Its goroutines end with
// Close. It promises that the end of an attempt is reported once, and only when no process of it is left.
//
// The machine's effects on the process come in by Do, in order; what happens goes out as events of the machine. The
// agent makes a Process when an instance has been prepared, and the agent's API asks it.
package process
