// Package tail keeps and finds the end of an output: Buffer the end of a stream, Parts the end of a log and of the
// files that it was rotated to, Lines whole lines of a stream, Last the last
// lines of a text for people.
//
// It owns no files: it opens a log, reads it and closes it. It promises bounded memory, whatever the length of the
// output. `muster run` and `muster logs` show logs by it; shim/process reads the end of a command's output.
package tail
