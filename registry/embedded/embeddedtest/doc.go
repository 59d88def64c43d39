// Package embeddedtest starts embedded registries for tests.
//
// A test comes in; an HTTP client goes out whose connections are pipes in memory. Nothing touches a network, so it
// works inside a testing/synctest bubble, where the twenty seconds of a session take no time. The registry ends with
// its test.
package embeddedtest
