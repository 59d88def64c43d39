// Package member is this agent in its gang: it claims an index, publishes and acknowledges, reads the roster, and
// leaves.
//
// Member does the machine's effects on the registry and turns what the registry reports into the machine's events. It
// owns the membership (consul.Membership) and smaller objects with a lock and goroutines of their own: Fence (the
// partition guard: may a process run here while the registry does not answer?), the probe of the peers' hosts,
// discovery (the instance's services in Consul), the API for peer agents, and the absentees (whom the barrier waits
// for). Close and Withdraw end every goroutine and wait for it. What the rest of the agent does at the steps of a
// membership comes as Hooks. host.go answers where an agent runs and which address its peers are given.
//
// The wiring of the agent makes a Member and hands it to the machine as its gang; the process asks its Fence before a
// start.
package member
