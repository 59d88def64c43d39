// Package login is the ssh server of one instance: sessions that run as its process's user in its container.
//
// Serve answers a listener: commands, shells with a terminal, sftp, and connections forwarded to where the container
// can connect. It starts nothing itself: Config has what runs a program beside the app, so a session has the limits,
// the user, the environment and the namespaces of `muster exec`. Only public keys are taken, those that Config.Admit
// knows. HostKey derives the key of an instance from the token of its run, so that clients pin it without asking;
// Files are the files that make `ssh worker-0` work with OpenSSH's client.
//
// The room owns the connections that it answers; Serve returns when the last one is closed. The agent serves; `muster
// ssh` writes Files.
package login
