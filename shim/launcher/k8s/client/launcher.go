package client

import "github.com/muster-agent/muster/shim/launcher/job"

// Launcher is how jobs come to Kubernetes.
var Launcher = job.Launcher{New: open, InImage: true, NewRuns: true, FirstRun: firstRun}

func open(r job.Request) (job.Client, error) {
	return &client{Objects: r.Job.Files[0].Text, Namespace: r.Options.Namespace}, nil
}

// firstRun: a JobSet numbers its runs, from 0 with each submission; plain Jobs have one.
func firstRun(run, format string) string {
	if format == "jobs" {
		return run
	}
	return run + "-0"
}
