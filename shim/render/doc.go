// Package render writes the job files of resource managers: what Nomad, systemd, Slurm, Kubernetes and YARN are told so
// that each instance of an App gets an agent, in a container of the right size.
//
// An App and values (names, paths, addresses) come in; text goes out, and a list of everything that the launcher has no
// word for. The folder of each launcher writes its own format; this room has what they share: groups of containers and
// their memory, flags, names, quoting for a shell.
//
// It is pure and owns nothing: no clock, no network, no os. The same App and values give the same bytes.
//
// Callers: shim/launcher/known, with its table of launchers, for `muster render` and shim/submit; the folders of
// launchers use the Writer.
package render
