// Package ownfolder makes folders of an agent's own in places that other users reach: locks and secrets lie there.
//
// It promises that no step follows a link, that each folder belongs to the agent's user, and that nobody else can write
// to it or rename it. shim/hostlock and shim/secret call it. Fixed tells whether another user could replace what is at
// a path; shim/files and shim/policy call it.
package ownfolder
