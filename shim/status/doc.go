// Package status shows what an agent is doing: as rows and states in JSON, over an HTTP API, and in files that remain
// when the agent has ended.
//
// A Source answers the local API on a unix socket (Handler: state, logs, signals, stop, exec, commands) and the API for
// peer agents (PeerHandler: state, contact with the registry, programs of an MPI job); Client asks both. Dir is the
// state folder of a host, with a folder per app: sockets, app.json, a record per instance. Follow and Watch read a
// growing log over its rotations. The JSON of every type here is a contract with users and scripts.
//
// The room owns the state folder and the connections that it answers; Serve returns when its last request was answered.
// The agent serves, every verb of the command line asks or reads.
package status
