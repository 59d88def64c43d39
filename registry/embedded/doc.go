// Package embedded is the registry of a single machine: the part of Consul's HTTP API (as version 1.14.4 answers it)
// that registry/consul uses, kept in memory by the process that serves it.
//
// HTTP requests come in on a unix socket or on loopback; Consul's answers go out:
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
// keyStore holds all the state and the rules, without clock, lock and network. Server owns the mutex, the time, the
// waiting readers and the goroutine that ends sessions. registry/registrytest/http checks it and a real Consul with the
// same tests. These differences remain:
//
//   - Readers wake only for changes of the keys that they read, never for a neighbour's.
//   - The index of a list does not fall when old deletions are forgotten or everything is deleted.
//   - Connections are never refused for their number (429), nothing is compressed, tokens are ignored.
//   - A null in a transaction is answered with 400 (Consul drops the connection). A value over 512 KB is answered with
//     413 also if it comes without a length. The body of a session request without a length is read, not ignored.
//   - The answer to a transaction of reads has no query metadata. There is one node. Session ids are compared with
//     their letter case.
//
// Nothing is written to disk and no token is asked for: every process that can open the socket owns the data.
package embedded
