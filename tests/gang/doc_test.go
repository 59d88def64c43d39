// Package gang plays whole gangs: the muster binary as users start it, real processes, real signals,
// the embedded registry and a real Consul. What is asserted is what users and operators see: exit
// codes, logs, files, the registry's keys, and what the processes themselves were told.
//
// The processes are puppets (this test binary under another verb, see puppet_test.go) that do nothing
// until the test tells them to, or catalog:handwriting where training and checkpoints matter. So nothing
// here depends on the clock: a test waits for an event under a watchdog that only ends what has gone wrong.
package gang
