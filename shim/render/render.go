// Package render writes the job files of resource managers: what Nomad, systemd, Slurm, Kubernetes and YARN are told so
// that each instance of an App gets an agent, in a container of the right size.
//
// What enters is an App and values (names, paths, addresses); what leaves is text, and a list of what the launcher has no
// word for. The package refuses to know the machine: no clock, no network, no os.
package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
)

// The launchers that job files are written for, as `muster render` names them.
const (
	Nomad      = "nomad"
	Systemd    = "systemd"
	Slurm      = "slurm"
	Kubernetes = "k8s"
	YARN       = "yarn"
)

// Launchers are all of them, sorted.
func Launchers() []string { return []string{Kubernetes, Nomad, Slurm, Systemd, YARN} }

// Formats are the forms in which a launcher's job can be written, its usual one first.
func Formats(launcher string) []string {
	switch launcher {
	case Nomad:
		return []string{"hcl", "json"} // json: as Nomad's API takes it
	case Kubernetes:
		return []string{"jobset", "jobs"}
	case YARN:
		return []string{"service", "shell"} // shell: the command line of the distributed shell
	case Slurm:
		return []string{"sbatch"}
	case Systemd:
		return []string{"units"}
	}
	return nil
}

// Options are what a job file says beside the App.
type Options struct {
	Format string // one of Formats; empty: the first
	AppID  string
	Run    string
	// App is the APP that agents load, and AppFlags change it as the caller's own flags did (`--set`, `--instances`).
	App      string
	AppFlags []string
	// Binary is the path of muster on the hosts, or a URL that the launcher brings it from.
	Binary   string
	Registry string
	// AgentFlags are further flags of `muster agent`, as its command line has them.
	AgentFlags []string
	// KillWindow is what the launcher leaves between its stop signal and SIGKILL; 0: enough for the grace of each
	// component where the launcher can be told, else the launcher's usual.
	KillWindow time.Duration
	// TokenFile is the file on the hosts that has Consul's token; TokenSecret the Secret of Kubernetes, NAME or NAME/KEY.
	TokenFile, TokenSecret string

	Queue    string // partition of Slurm, queue of YARN
	Priority string // a number, or one of HBox's words

	Namespace, Region string   // of Nomad, and of Kubernetes
	Datacenters       []string // of Nomad; none: all
	Driver            string   // of Nomad: raw_exec, exec; empty: the first
	User              string   // of the agents, where the launcher can be told
	Privileged        bool     // systemd: agents are root and make containers
	Image             string   // Kubernetes: of the pods; empty: each component's own
	TimeLimit         time.Duration

	// MasterMemoryMB and MasterVCores are those of YARN's ApplicationMaster; 0: its own.
	MasterMemoryMB, MasterVCores int
}

// File is one text of a job, and what it is called.
type File struct {
	Name string
	Text string
}

// Job is what a launcher is told.
type Job struct {
	Files []File // in the order in which a person reads them
	// Lost is what the App asks for and the launcher has no word for, and what stands in its place, a sentence each.
	Lost []string
	// Applications are the names of those that a script of YARN's distributed shell submits.
	Applications []string
}

// Render writes the job. The same arguments give the same bytes. An error says which value the format cannot hold.
func Render(launcher string, app appdef.App, o Options) (Job, error) {
	formats := Formats(launcher)
	if formats == nil {
		return Job{}, fmt.Errorf("launcher %s: want one of %s", appdef.Quote(launcher), strings.Join(Launchers(), ", "))
	}
	if o.Format == "" {
		o.Format = formats[0]
	}
	if !slices.Contains(formats, o.Format) {
		return Job{}, fmt.Errorf("%s: format %s: want %s", launcher, appdef.Quote(o.Format), strings.Join(formats, " or "))
	}
	w := writer{launcher: launcher, app: &app, o: o}
	if err := w.check(); err != nil {
		return Job{}, fmt.Errorf("%s: %w", launcher, err)
	}
	w.gather()
	var files []File
	var err error
	switch launcher {
	case Nomad:
		files, err = w.nomad()
	case Systemd:
		files, err = w.systemd()
	case Slurm:
		files, err = w.slurm()
	case Kubernetes:
		files, err = w.kubernetes()
	default:
		files, err = w.yarn()
	}
	if err != nil {
		return Job{}, fmt.Errorf("%s: %w", launcher, err)
	}
	return Job{Files: files, Lost: w.lost, Applications: w.applications}, nil
}

// writer is one Render.
type writer struct {
	launcher string
	app      *appdef.App
	o        Options
	groups   []group
	lost     []string

	applications []string
}

// lose notes what the launcher cannot be told, once.
func (w *writer) lose(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(w.lost, line) {
		w.lost = append(w.lost, line)
	}
}
