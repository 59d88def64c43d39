// Package registry holds what a gang keeps about itself, as values: the app and its run, the directive that all
// members follow, the members' records, the sealed roster, checkpoints, verdicts, asks, and the times and names that
// all sides share.
//
// It is pure: no clock, no network, no file. One value has one form in JSON, and agents of different versions read
// each other's: fields are added, never renamed. Long values (rosters, definitions) are packed into chunks that are
// named by their content.
//
// It decides nothing. registry/conductor decides from these values, registry/consul keeps them in Consul,
// registry/embedded is a server for one machine; plans, environments, status and the agent read them.
package registry
