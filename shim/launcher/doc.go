// Package launcher answers "who started me, and what was I granted" from the environment.
//
// A map of variables comes in, with a few facts that the caller reads from the machine; the launcher's name, a
// plan.Allocation and what the launcher says about identity go out. Origins names the variable behind each answer. Two
// tables per launcher stand beside that: how it is told what an agent's end means (answer.go), and what outlives a
// restart that it makes on the same host.
//
// The room is pure and owns nothing; the addresses of the host are found by route below. It does not know the command
// line: `flag > MUSTER_AGENT_<FLAG> > launcher > default` is the caller's order.
//
// Callers: the agent, `muster plan` and `muster doctor` by way of known, the table of launchers; the folder of each
// launcher gives its Launcher; shim/render takes the answers and exit codes.
package launcher
