// Package embedded is the registry of a single machine: the part of Consul's HTTP API (as version
// 1.14.4 answers it) that the Consul client of muster uses, kept in memory by the process that
// serves it.
//
// What enters are HTTP requests on a unix socket or on loopback; what leaves are Consul's answers:
//
//	PUT    /v1/session/create, /v1/session/destroy/ID, /v1/session/renew/ID
//	GET    /v1/session/info/ID
//	GET    /v1/kv/KEY      recurse keys separator raw stale consistent index wait
//	PUT    /v1/kv/KEY      cas acquire release flags
//	DELETE /v1/kv/KEY      cas recurse
//	PUT    /v1/txn         the KV verbs
//	GET    /v1/status/leader, /v1/agent/self
//
// Anything else is answered with 501 and its name.
//
// keyStore is the whole of the state and of the rules: no clock, no lock, no network. [Server] is the
// rim around it: it has the mutex, the time, the readers that wait and the goroutine that ends sessions.
// registry/registrytest/http checks it and a real Consul with the same tests. What still differs:
//
//   - Readers are woken by changes of what they read alone, never by a neighbour's.
//   - The index of a list does not fall when old deletions are forgotten or everything is deleted.
//   - No number of connections is refused (429), nothing is compressed, tokens are ignored.
//   - A null in a transaction is 400 (Consul drops the connection); a value over 512 KB is 413 also when
//     it comes without a length; a session's body without a length is read and not passed over.
//   - A transaction of reads answers without the fields of query metadata; there is one node, and the
//     letters of a session's id are compared as they are.
//
// Nothing is written to disk and no token is asked for: whoever can open the socket owns the data.
package embedded
