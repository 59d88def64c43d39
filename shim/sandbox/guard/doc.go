// Package guard holds the small static program that stands between an agent and the process it runs, as bytes to
// execute, and the messages of its protocol. The program itself is C, in src; src/guard.h describes the protocol, and a
// test holds its constants equal to those here.
//
// The guard owns the processes that it starts, their logs and their death: it is their subreaper, kills them when the
// agent's end of its lifeline closes, and proves that none is left. The package owns nothing.
//
// Callers: shim/sandbox starts the program and exchanges the messages; shim/prepare names the process's user in the
// form of a message; shim/doctor tells that the program was not built.
package guard
