// Package exit holds the exit codes of muster and the errors that carry one.
//
// The codes are a contract with launchers: `muster help exit-codes` prints what each means. Of maps a verdict to a
// code (an agent's own is chosen by shim/machine, exitcode.go; shim/life.go adds 69 for outputs that could not be
// left and applies --exit-code-map); an Error gives a failure its code; a Silent ends with a code after everything
// has been said. The agent and every verb of the command line use them, and main alone turns an error into the end of
// the process (CodeOf). The room is pure: it owns nothing.
package exit
