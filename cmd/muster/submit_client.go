package main

import (
	"context"

	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/render"
	"github.com/muster-agent/muster/shim/submit"
)

// launching is a job at its launcher.
type launching interface {
	// Start starts it, and gives the launcher's id.
	Start(ctx context.Context) (id string, err error)
	// State tells how it stands.
	State(ctx context.Context) (submit.State, error)
	// Stop ends it at the launcher: agents get the launcher's stop signal.
	Stop(ctx context.Context) error
	// Hints are the launcher's own commands that follow the job and end it.
	Hints() (follow, end string)
}

// client is the way to a launcher with a job that was rendered for it.
func (f *submitFlags) client(s streams, name string, job render.Job) (launching, error) {
	switch name {
	case "nomad":
		return &submit.Nomad{Address: f.address, Job: job.Files[0].Text, Final: launcher.CodesOf(launcher.Never)}, nil
	case "yarn":
		return f.yarn(s, job)
	case "slurm":
		return &submit.Slurm{Script: job.Files[0].Text}, nil
	case "k8s":
		return &submit.Kubernetes{Objects: job.Files[0].Text, Namespace: f.job.options.Namespace}, nil
	}
	units := map[string]string{}
	for _, file := range job.Files {
		units[file.Name] = file.Text
	}
	return &submit.Systemd{Dir: f.unitDir, Units: units}, nil
}
