// Package apps finds out what is known of an app: from the files and agents of this host, and from its registry. Lookup
// says where to look; Facts are what was found; Target is the app or instance that a word of the command line names.
//
// It also lists apps, forgets finished ones (their keys in the registry and their state files here, never their work),
// and sends requests to an app's conductor. It owns nothing and starts nothing that outlives a call.
//
// Callers: every verb that asks about an app.
package apps
