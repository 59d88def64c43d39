// Package explorer holds the explorer of the gang: it runs the production code of a small gang, conductor.Admit,
// conductor.State.Step with its timers and machine.Step, against a simulated registry in virtual time, and chooses
// what happens next: whose request is answered, which answer is lost, which request arrives after its sender has given it
// up, who dies, how far the clock moves.
//
// Small settings are explored completely, larger ones by random walks. A story that breaks an invariant is shortened
// and printed as a scenario, one choice on a line; scenarios in testdata are replayed by every test run. Most of them
// take a rule of the protocol away and break an invariant that holds with it: TestMutations lists the rules that have
// none, and finds some with -record.
//
// What stands between the three (the requests of registry/consul and of shim/member) is written here a second time, in
// member_test.go, newcomer_test.go and conduct_test.go. TestTransactions compares its transactions with those that
// registry/consul sends, and TestStore the store with registry/embedded.
package explorer
