// Package consulhttp is the conformance suite for the part of Consul's HTTP API that muster uses.
//
// A server comes in; each answer that differs from those of Consul 1.14.4 is a failed test. A real Consul and the
// embedded registry both pass the suite. muster relies on nothing that the suite does not check.
//
// Caller: the test of this folder, which runs it against both servers.
package consulhttp
