// Package consul keeps a gang's facts in Consul's key-value store: one client for a real Consul and
// for registry/embedded.
//
// Values and decisions of package registry come in; transactions, each all or nothing, and events go out. It decides
// nothing: conductor.Admit decides who may claim an index, and conductor.State what the conductor does next.
//
// Keys under muster/<app>/ (key, kind, written by):
//
//	app                    CAS                      founder, new run
//	directive              locked, release          conductor
//	roster/<gen>-<12>/<n>  CAS 0, by content        conductor
//	members/<c>/<i>        CAS                      its holder; lost: conductor
//	live/<c>/<i>           locked, delete           its holder
//	ready/<gen>/<c>/<i>    locked, delete           its holder
//	ask/<kind>/<id>        plain                    command line
//	checkpoint/<c>/<i>     CAS under live           its holder
//	verdict/<run>          CAS 0, once              conductor
//
// Rules of every write: a refusal for Consul's lock delay is retried. After any other refusal read and decide again.
// After an unknown result (time-out, 5xx, reset) the keys are read and compared with what was sent; nothing is repeated
// blindly. 403 and 429 are named. An unreachable registry stops nothing here: every caller retries and reports since
// when it is unreachable.
//
// Events come from one goroutine, in order. A member's first event is DirectiveSeen with the current directive.
// Reachable ends Unreachable and DataLost; while the data is lost this agent neither conducts nor founds an app.
//
// Connections: a member has two (the blocking read of the directive, the rest), a conductor four.
package consul
