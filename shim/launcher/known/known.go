package known

import (
	"slices"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/launcher/job"
	"github.com/muster-agent/muster/shim/launcher/k8s"
	k8sclient "github.com/muster-agent/muster/shim/launcher/k8s/client"
	"github.com/muster-agent/muster/shim/launcher/nomad"
	nomadclient "github.com/muster-agent/muster/shim/launcher/nomad/client"
	"github.com/muster-agent/muster/shim/launcher/slurm"
	slurmclient "github.com/muster-agent/muster/shim/launcher/slurm/client"
	"github.com/muster-agent/muster/shim/launcher/systemd"
	systemdclient "github.com/muster-agent/muster/shim/launcher/systemd/client"
	"github.com/muster-agent/muster/shim/launcher/yarn"
	yarnclient "github.com/muster-agent/muster/shim/launcher/yarn/client"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/render"
)

// Launcher is all that is known of one launcher.
type Launcher struct {
	Agents launcher.Launcher // what it grants its agents, and what it does with their ends
	Jobs   render.Launcher   // its job files
	Client job.Launcher      // how jobs come to it
}

// all are the launchers, in the order in which they are looked for.
var all = []Launcher{
	{yarn.Agents, yarn.Jobs, yarnclient.Launcher},
	{nomad.Agents, nomad.Jobs, nomadclient.Launcher},
	{slurm.Agents, slurm.Jobs, slurmclient.Launcher},
	{k8s.Agents, k8s.Jobs, k8sclient.Launcher},
	{systemd.Agents, systemd.Jobs, systemdclient.Launcher},
}

// Names are those of all launchers as `muster render` and `muster submit` have them, sorted.
func Names() []string {
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.Jobs.Name
	}
	slices.Sort(names)
	return names
}

// Find gives the launcher of a name.
func Find(name string) (l Launcher, ok bool) {
	for _, l := range all {
		if l.Jobs.Name == name {
			return l, true
		}
	}
	return Launcher{}, false
}

// NameOf is how the launcher that plans and records call so is called by `muster render`: k8s for kubernetes.
func NameOf(agents string) (name string, ok bool) {
	for _, l := range all {
		if string(l.Agents.Name) == agents {
			return l.Jobs.Name, true
		}
	}
	return "", false
}

// Formats are the forms in which a launcher's job can be written, its usual one first; none: there is no such launcher.
func Formats(name string) []string {
	l, _ := Find(name)
	return l.Jobs.Formats
}

// KeepsOutput tells that a launcher keeps what its agents write to stdout and stderr.
func KeepsOutput(name launcher.Name) bool {
	return slices.ContainsFunc(all, func(l Launcher) bool { return l.Agents.Name == name && l.Agents.KeepsOutput })
}

// Detect recognises the launcher that has started us, and reads what it granted.
func Detect(env map[string]string, facts launcher.Facts) launcher.Found {
	agents := make([]launcher.Launcher, len(all))
	for i, l := range all {
		agents[i] = l.Agents
	}
	return launcher.Detect(agents, env, facts)
}

// FlatLogs tells that a launcher collects the files of its log folder, and none of the folders in it.
func FlatLogs(name launcher.Name) bool {
	return slices.ContainsFunc(all, func(l Launcher) bool { return l.Agents.Name == name && l.Agents.FlatLogs })
}

// Describe tells people what is known of the launcher, and what it does with an agent's end.
func Describe(f launcher.Found, host launcher.Host) plan.Launcher {
	at := slices.IndexFunc(all, func(l Launcher) bool { return l.Agents.Name == f.Name })
	if at < 0 {
		return launcher.None.Describe(f, host)
	}
	return all[at].Agents.Describe(f, host)
}

// Render writes the job for the launcher of that name.
func Render(name string, app appdef.App, o render.Options) (render.Job, error) {
	jobs := make([]render.Launcher, len(all))
	for i, l := range all {
		jobs[i] = l.Jobs
	}
	return render.Render(jobs, name, app, o)
}
