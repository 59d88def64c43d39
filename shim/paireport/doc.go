// Package paireport describes the end of a process in OpenPAI's words, for jobs that were written for PAI.
//
// It owns two things. Classify finds the row of PAI's exit tables (0.14 and 1.x) for the facts of an end. ExitReport
// writes the block of text that PAI's containers leave for their launcher.
//
// It promises to decide nothing: the registry holds the verdict of the run, and the process keeps its own exit code
// beside PAI's. It is pure and knows no processes and no files.
//
// The agent (room shim) calls it for status and for the log of an instance, and `muster run` for the report of a job.
package paireport
