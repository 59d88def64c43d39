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
// [Store] is the whole of the state and of the rules: no clock, no lock, no network. [Server] is the
// rim around it: it has the mutex, the time, the readers that wait and the timer that ends sessions.
// Nothing is written to disk and nobody is asked for a token: who can open the socket owns the data.
package embedded
