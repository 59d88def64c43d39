package client

import (
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/launcher/job"
)

// Launcher is how jobs come to Nomad. Its API takes no HCL.
var Launcher = job.Launcher{New: open, Format: "json"}

func open(r job.Request) (job.Client, error) {
	return &client{Address: r.Address, Job: r.Job.Files[0].Text, Final: launcher.CodesOf(launcher.Never)}, nil
}
