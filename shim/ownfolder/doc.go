// Package ownfolder makes folders of an agent's own in places that other users reach: locks and secrets lie there.
//
// It promises that no step follows a link, that each folder belongs to the agent's user, and that nobody else can write
// to it or rename it. shim/hostlock and shim/secret call it. What others have made is judged here, too: Fixed refuses a
// path at which another user could put something else, Trusted a file that another user could have written as well,
// and Own what is not all this user's. Rooms that go by what a file says call them before they read it.
package ownfolder
