// Package ssh logs in to instances: it permits a key of its own in the app's registry, and runs OpenSSH's client with
// the pinned keys of the instances' servers, or its own client where there is none. For other programs it writes the
// key and a configuration into a folder of the user's; for those of another machine it makes a key with an end.
//
// It owns the folder of one login, and removes it. Callers: muster ssh, and the page of
// muster ui.
package ssh
