// Package logtimes keeps when a process wrote its logs, beside them: a log has the process's bytes and nothing else.
//
// Keep watches one log until its context ends and writes marks, at most one a second, to LOG.times: so many bytes of
// that file were there then. A file is known by its inode, so that a rotation needs no other name. The marks are
// bounded: when there are too many, every second one goes. Read gives the marks of a log to readers. The folder belongs
// to the process: nothing there is trusted, and what cannot be read is a time that is unknown.
//
// Callers: the agent (shim) keeps them; shim/status reads them, here and for other hosts.
package logtimes
