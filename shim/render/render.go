package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/registry"
)

// Launcher is one launcher as job files are written for it.
type Launcher struct {
	Name    string   // as `muster render` and `muster submit` have it
	Formats []string // in which its jobs can be written, the usual one first
	Flags   []string // of those that only some launchers have a word for: flagsOf
	// AgentMemoryMB is what the launcher is asked for beside the process's memory; 0: plan.AgentMemoryMB.
	AgentMemoryMB   int
	GrantsPorts     bool
	CountsProcesses bool
	// Window is the kill window of a group's agents, where they want one; nil: the job says how long it is.
	Window func(w *Writer, g Group, wanted time.Duration) time.Duration
	// Write writes the job's files.
	Write func(w *Writer) ([]File, error)
}

// programs are what is known of the binary beside its place, and what is brought with it.
type programs struct {
	// BinarySHA256 is the digest that the binary must have when an agent starts, in hex; empty: it is not checked.
	// #sha256=HEX at the end of Binary says it too.
	BinarySHA256 string
	// Helper is the path or URL of muster-gpu that is brought beside Binary, and HelperSHA256 its digest; empty: none.
	Helper, HelperSHA256 string
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
	Binary string
	programs
	Registry registry.Address
	// AgentFlags are further flags of `muster agent`, as its command line has them.
	AgentFlags []string
	// KillWindow is what the launcher leaves between its stop signal and SIGKILL; 0: enough for the grace of each
	// component where the launcher can be told, else the launcher's usual.
	KillWindow time.Duration
	// TokenFile is the file on the hosts that has Consul's token; TokenSecret the Secret of Kubernetes, NAME or
	// NAME/KEY.
	TokenFile, TokenSecret string

	Queue    string // partition of Slurm, queue of YARN
	Priority string // a number, or one of HBox's words
	Starts   bool   // muster starts the job itself, and tells the launcher what no file says

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
	// Unsupported is what the App asks for and the launcher has no word for, and what stands in its place, a
	// sentence each.
	Unsupported []string
	// Applications are the names of those that a script of YARN's distributed shell submits.
	Applications []string
	// Priority is what no file of YARN's says: a number; empty: none is wanted.
	Priority string
}

// Render writes the job for the launcher of that name, one of all. The same arguments give the same bytes. An error
// says which value the format cannot hold.
func Render(all []Launcher, name string, app appdef.App, o Options) (Job, error) {
	at := slices.IndexFunc(all, func(l Launcher) bool { return l.Name == name })
	if at < 0 {
		return Job{}, fmt.Errorf("launcher %s: want one of %s", appdef.Quote(name), strings.Join(names(all), ", "))
	}
	to := all[at]
	if o.Format == "" {
		o.Format = to.Formats[0]
	}
	if !slices.Contains(to.Formats, o.Format) {
		return Job{}, fmt.Errorf("%s: format %s: want %s",
			name, appdef.Quote(o.Format), strings.Join(to.Formats, " or "))
	}
	w := Writer{App: &app, Options: o, launcher: to}
	if err := w.splitPin(); err != nil {
		return Job{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := w.check(); err != nil {
		return Job{}, fmt.Errorf("%s: %w", name, err)
	}
	w.gather()
	w.loseFlags(all)
	files, err := to.Write(&w)
	if err != nil {
		return Job{}, fmt.Errorf("%s: %w", name, err)
	}
	return Job{
		Files: files, Unsupported: w.unsupported, Applications: w.Applications, Priority: w.Priority,
	}, nil
}

// names are those of launchers, sorted.
func names(all []Launcher) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].Name
	}
	slices.Sort(out)
	return out
}

// Writer is one Render.
type Writer struct {
	App     *appdef.App
	Options Options
	Groups  []Group
	// Applications are the names of those that the job submits, where it submits several.
	Applications []string
	Priority     string // of Job

	launcher    Launcher
	unsupported []string
}

// Cannot notes what the launcher cannot be told, once.
func (w *Writer) Cannot(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(w.unsupported, line) {
		w.unsupported = append(w.unsupported, line)
	}
}
