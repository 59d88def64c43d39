package client

import "github.com/muster-agent/muster/shim/launcher/job"

// Launcher is how jobs come to Slurm. A job that is put into the queue again after a verdict is a new run.
var Launcher = job.Launcher{New: open, NewRuns: true}

func open(r job.Request) (job.Client, error) { return &client{Script: r.Job.Files[0].Text}, nil }
