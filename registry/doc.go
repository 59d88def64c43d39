// Package registry holds what a gang agrees on, as values, and the decisions taken from them: who may
// claim an index, what the conductor does next, what the roster says.
//
// Everything here is pure: reads come in as values, writes leave as values; there is no clock, no
// network and no os. registry/consul keeps the same facts in Consul; registry/embedded is a server
// for one machine.
//
// Four questions are answered:
//
//	Decide(look, me, alive) Decision      a newcomer: found, claim, stand by, refuse, wait
//	Conductor.Step(now, view) Effects     the conductor: read this, seal, rebuild, declare lost, end
//	Charge(budget, rule, now, step)       may this death be followed by another start?
//	ClusterSpec(roster), Pack, Unpack     who is where, as bytes with a name of their own
//
// The life of a run, as directives (run, gen, act); each arrow is one transaction that checks the
// conductor's session and the index of the directive it was decided from:
//
//	        founded            all are ready               a member is gone
//	nothing -------> g wait ------------------> g run ----------------------> g+1 wait
//	           T2       |            T5           |             T11
//	                    |   verdict: T12          |
//	                    +-----------> g stop <----+
//
// Three scopes decide what a death means. instance: the agent starts the process again in place, and
// a replacement at the same address joins the running generation; one elsewhere makes a new one, and so
// does a gang of which every agent is a new one.
// gang: every death makes a new generation, charged to the directive's budget. never: it is the end,
// unless nothing that the app did was the cause.
//
// What a Step may rest on is old by the time its effect arrives. Therefore no effect is believed to
// happen: it is refused when the directive or the record has changed, and then everything is read
// again. The explorer in this package's tests walks through all such orders for small gangs.
package registry
