// Package registrytest is the conformance suite of a gang: several of registry/consul's clients in one process found,
// claim, acknowledge, fail, die and leave against one registry.
//
// The same suite passes against registry/embedded, over its unix socket and over loopback, and against a real Consul in
// server mode. All of it is in the tests of this folder; registrytest/http is the suite one level below, for the HTTP
// API itself.
package registrytest
