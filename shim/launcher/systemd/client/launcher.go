package client

import "github.com/muster-agent/muster/shim/launcher/job"

// Launcher is how jobs come to systemd, on this host.
var Launcher = job.Launcher{New: open, OneHost: true}

func open(r job.Request) (job.Client, error) {
	units := map[string]string{}
	for _, file := range r.Job.Files {
		units[file.Name] = file.Text
	}
	return &client{Dir: r.UnitDir, Units: units}, nil
}
