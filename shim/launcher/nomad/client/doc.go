// Package client brings a job to its launcher by Nomad's HTTP API.
//
// It implements job.Client: Start, State, Stop and Hints. It is a room of its own because the launcher's other parts
// are pure: they read no network and start no process. It owns connections to Nomad's API. Room shim/launcher/known
// names it in the table of launchers.
package client
