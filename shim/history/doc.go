// Package history is the store of ended runs: a folder, on this host or in HDFS, in which every run leaves what is
// known of it, so that it can be read on any host when no agent of it lives any more. doc/history.md has the layout.
//
// Agents write their own instance's files at their end, and the conductor's agent those of the run; a file is complete
// or absent, and what an older life of an instance or of a conductor writes replaces nothing of a newer one. Who writes
// a run removes those that are too old, or too many. Store reads: for ps, status, logs, events and the page.
//
// It promises bounded memory, whatever is kept, and that in a store on this host nobody who reads, removes or writes
// follows a link, nor an agent writes into another user's folder. What cannot be read is left out, and named. shim
// writes, cmd/internal/apps reads, `muster gc --history` clears up.
package history
