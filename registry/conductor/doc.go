// Package conductor decides, from what package registry keeps:
//
//	State.Step(now, view) effects       the conductor: read this, seal, rebuild, declare lost, end
//	Admit(snapshot, newcomer, alive)    a newcomer: found, claim, stand by, refuse, wait
//	Contact.Standing, Panel.Evidence    a member that is cut off: go on, ask its peers, stop
//	Charge(budget, rule, now, step)     may this death be followed by another start?
//
// It is pure: reads come in as values, writes leave as values, time is an argument. registry/consul carries the
// effects out; the agent asks about its own standing; shim/plan makes the Facts.
//
// The life of a run, as directives (run, gen, act); each arrow is one transaction that checks the
// conductor's session and the index of the directive it was decided from:
//
//	        founded            all are ready               a member is lost
//	nothing -------> g wait ------------------> g run ----------------------> g+1 wait
//	           T2       |            T5           |             T11
//	                    |   verdict: T12          |
//	                    +-----------> g stop <----+
//
// Three scopes decide what a death means. instance: the agent starts the process again in place, and a replacement
// at the same address joins the running generation; a replacement elsewhere makes a new generation, and so does a
// gang of which every agent is new. gang: every death makes a new generation, charged to the directive's budget.
// never: a death is the end, unless the app was not its cause.
//
// A decision rests on reads that are old by the time its effect arrives. Therefore no effect is believed to happen:
// it is refused when the directive or the record has changed, and then everything is read again. tests/explorer
// goes through all such orders for small gangs.
package conductor
