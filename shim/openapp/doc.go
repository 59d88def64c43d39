// Package openapp opens the APP of a command line: a folder, an archive, a URL, a job file, or a name of the catalog.
// It reads the definition with the settings that were chosen and keeps the package open for whoever unpacks it.
//
// Choices go in; an App comes out: the definition, its Source, and the reference that agents load, so that all agents
// of a run have the same bytes. It owns the open package until App.Close, and it fetches into the cache of packages.
// Problems of the definition carry exit code 65, those of the command line 64, a policy that refuses the package 77.
//
// Callers: every verb that takes APP, and the agent.
package openapp
