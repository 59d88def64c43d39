// Package detach starts `muster run` in a session of its own, so that the end of a shell is not the end of the run, and
// waits until the run's instances are installed.
//
// What the run prints lies in run.out and run.err in its work folder. The package owns the process only while it waits:
// the run goes on when this command ends. It decides nothing about the run, whose flags the caller gives.
//
// Callers: `muster run --detach`, and Slider's create and start.
package detach
