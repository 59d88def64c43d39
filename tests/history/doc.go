// Package history runs gangs of real agents against three real Consul servers while agents, processes, servers and the
// network between them fail by a seeded schedule, and checks afterwards what happened.
//
// Network namespaces are the hosts. On each, agents reach Consul through a proxy that knows all servers; some of these
// proxies cut reads that wait. A small launcher starts an agent again that has ended before its run did, and the next
// run after the end of the last. Processes write down their own starts and ends; the test writes down when each was
// last alive, what Consul's keys said, which agents ended how, and the faults. Together these lines are the history.
// All its times are of one clock, the machine's CLOCK_BOOTTIME.
//
// check.go says what every history must keep. It is pure and has tests of its own.
package history
