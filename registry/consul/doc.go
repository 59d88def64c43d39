// Package consul keeps a gang's facts in Consul's key-value store: one client for a real Consul and
// for registry/embedded.
//
// What enters are values and decisions of package registry; what leaves are transactions, each all or
// nothing, and events. It decides nothing of its own: who may claim an index is conductor.Admit's word,
// what the conductor does next is conductor.State's.
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
// Rules of every write: a refusal for Consul's lock delay is tried again; any other refusal means read
// again and decide again; after an unknown result (time-out, 5xx, reset) the keys are read and compared
// with what was sent, nothing is repeated blindly; 403 and 429 are named. A registry that is away stops
// nothing here: everybody keeps trying and says since when.
//
// Events come from one goroutine, in order: a member's first is DirectiveSeen with the directive as it stands.
// Reachable ends Unreachable and DataLost; while the data is lost this agent conducts nothing and founds
// nothing anew.
//
// Connections: a member has two (the blocking read of the directive, the rest), a conductor four.
package consul
