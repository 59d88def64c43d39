// Package formats runs InputFormats and OutputFormats that users wrote in Java, on the Hadoop of the host.
//
// It has the class that does so (java/MusterFormats.class, of the source beside it, which scripts/formats compiles) and
// the words that it is run with. The class runs as a program of the instance's: with the rights, the limits and the
// files of its process, never with the agent's. It takes splits or lines from stdin and writes splits or records to
// stdout; Failure is what its end meant.
//
// shim/data/manager calls it, and runs the program.
package formats
