// Package fault gives a failure of an agent the class that its verdict will have.
//
// Whoever knows whose fault a failure is says so where it happens: Definition, NotPermitted, Data and so on wrap the
// error. ClassOf reads the class again where the failure becomes an event of the machine: after staging and after a
// start. The room is pure and owns nothing; all rooms of the agent use it.
package fault
