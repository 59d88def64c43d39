// Package machine decides what an agent does next: events in, effects out.
//
// Step is pure and its rules are a table, which prints itself as doc/machine.md. The loop (Agent) owns the State in
// one goroutine and the workers that hand effects to the rooms that it was given; Run awaits them. It promises that
// effects of one room are done in order, that an answer to an older attempt changes nothing, and that readers get a
// State that does not change. Not every effect is done to its end: a newer effect of Gang cancels the older one, and
// of the commits that wait only the newest five are done. The table is rules.go; guards.go says when a process is
// restarted (its budget is charged by conductor.Charge), actions.go how it is stopped, exitcode.go what the agent
// ends with. It knows neither Consul nor processes nor files: the rooms report events by Tell. The agent makes and
// runs it; all rooms read its State.
package machine
