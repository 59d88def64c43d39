// Package dryrun plans an app as the agents of this host would, and runs nothing.
//
// It asks the launcher's environment, or a file in its place, what is granted; chooses the engine that this host
// permits; finds Hadoop's configuration; and builds the plans. With a roster it adds the start of each process. It only
// reads.
//
// Callers: `muster plan`, and `muster explain`, which prints the same for people.
package dryrun
