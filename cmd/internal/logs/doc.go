// Package logs prints what the processes and agents of an app wrote on this host, and the events of its instances: of
// one instance or of all, with the rotated files, and on to the end of the run for who follows.
//
// Callers: muster logs, muster events.
package logs
