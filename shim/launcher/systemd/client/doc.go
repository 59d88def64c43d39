// Package client brings a job to its launcher by systemctl, and units below a folder of this host.
//
// It implements job.Client: Start, State, Stop and Hints. It is a room of its own because the launcher's other parts
// are pure: they read no network and start no process. It owns the units that it writes. Room shim/launcher/known
// names it in the table of launchers.
package client
