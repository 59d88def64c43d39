// Package linequeue writes lines behind its callers: to logs and event files on disks and pipes that may hang.
//
// Queue holds the lines that are not written yet, in bounded memory. Adding a line never blocks: a line that finds the
// queue full is dropped and counted, and the count is written once there is room. Close gives the writer a limited time
// to write what is left.
//
// Callers: the agent's log (shim) and its events (shim/journal).
package linequeue
