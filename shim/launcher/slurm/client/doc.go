// Package client brings a job to its launcher by sbatch, scontrol and scancel.
//
// It implements job.Client: Start, State, Stop and Hints. It is a room of its own because the launcher's other parts
// are pure: they read no network and start no process. It owns the client programs that it starts. Room
// shim/launcher/known names it in the table of launchers.
package client
