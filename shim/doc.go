// Package shim is the agent: the entrypoint of one container of a gang. Run is its whole life, from its options to the
// exit code that the launcher acts on.
//
// It makes the rooms below (prepare, process, member, data, checkpoint, journal, notify) in one order, closes them in
// the reverse one, and passes the machine's effects to them and their events to the machine. Itself it owns the agent's
// socket and the goroutines that answer there and at the publisher, what records this agent on its host (app.json, the
// instance's files in the state folder, exit.json and last.json beside the logs), and the hearing of signals and the
// lifeline. It promises that what a room has begun is awaited before Run returns. `muster agent` calls it; any other
// Go program may (see the example), after sandbox.Init as the first line of its main.
package shim
