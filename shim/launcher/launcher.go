// Package launcher answers "who started me, and what was I granted" from the environment.
//
// What enters is a map of variables and a few facts that the caller reads from the machine; what
// leaves is the launcher's name, a plan.Allocation and whatever the launcher says about identity. Two
// tables per launcher stand beside that: how it is told what an agent's end means (answer.go), and what
// outlives a restart that it makes on the same host. The package is pure; what it must know of the network
// its room `route` asks. It refuses to know the command line: `flag > MUSTER_AGENT_<FLAG> > launcher >
// default` is the caller's order, Origins names the variable behind each answer.
package launcher

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// Name is a launcher as plans, listings and member records print it.
type Name string

// The launchers. Shell is the absence of any other.
const (
	YARN       Name = "yarn"
	Nomad      Name = "nomad"
	Slurm      Name = "slurm"
	Kubernetes Name = "kubernetes"
	Systemd    Name = "systemd"
	Shell      Name = "shell"
)

// Relaunches tells whether this launcher starts a replacement when a container ends: an agent whose
// index is held by a live member then waits as standby. From a shell it is refused.
func (n Name) Relaunches() bool { return n != Shell && n != "" }

// KillWindow is the time in seconds between this launcher's stop signal and its SIGKILL, as assumed
// without `--kill-window`; no variable holds it. 0: there is none.
func (n Name) KillWindow() float64 {
	switch n {
	case YARN:
		return 0.25 // yarn.nodemanager.sleep-delay-before-sigkill.ms, to the process group
	case Nomad:
		return 5 // kill_timeout
	case Slurm:
		return 30 // KillWait
	case Kubernetes:
		return 30 // terminationGracePeriodSeconds
	case Systemd:
		return 90 // DefaultTimeoutStopSec
	case Shell:
		return 0
	}
	return 0
}

// Facts are what the variables do not say; all of them may be left empty.
type Facts struct {
	Machine  string        // what tells this machine from others, for names that are the machine's own
	Cgroup   string        // text of /proc/self/cgroup, cgroups(7)
	Envelope plan.Envelope // limits of the agent's own cgroup
	User     string        // name of the user that the agent runs as
}

// Found is what one launcher says. An empty value means that it says nothing.
type Found struct {
	Name      Name
	AppID     string
	RunID     string
	Component string
	Index     int // -1: not given
	Rank      int // place in the whole gang, -1: not given
	JobID     string
	Attempt   int // of the launcher's own starts of this container, from 1; 0: not told
	// Slot is a place that the launcher gives to one container at a time: who has it now is the proof that who had it
	// before is gone. Empty: the launcher promises nothing of the kind.
	Slot string
	// Notes are what a person should be told of this environment, a sentence each.
	Notes      []string
	WorkDir    string
	LogDir     string // agents write to its folder `muster`
	Allocation plan.Allocation
	// Origins name the variable or file behind each answer: `host`, `index`, `ports.http`, ….
	Origins map[string]string
}

// ValidName tells what may be an app id or a run id (and a component's name).
func ValidName(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i, r := range s {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("._~-", r)) {
			return false
		}
	}
	return true
}

// Detect recognises the launcher and reads what it granted. Launchers that start others come last:
// a NodeManager, a Nomad client and a slurmd are themselves services of systemd or run in pods.
func Detect(env map[string]string, facts Facts) Found {
	f := finder{env: env, facts: facts, found: Found{
		Index: -1, Rank: -1, Origins: map[string]string{},
		Allocation: plan.Allocation{
			Ports: map[string]int{}, Devices: []string{}, User: facts.User, Vars: map[string]string{},
		},
	}}
	f.found.Name = f.recognise()
	f.found.Allocation.Launcher = string(f.found.Name)
	f.found.Allocation.KillWindow = f.found.Name.KillWindow()
	if f.found.Name != Shell {
		f.found.Origins["kill_window"] = "assumed for " + string(f.found.Name)
	}
	switch f.found.Name {
	case YARN:
		f.yarn()
	case Nomad:
		f.nomad()
	case Slurm:
		f.slurm()
	case Kubernetes:
		f.kubernetes()
	case Systemd:
		f.systemd()
	case Shell:
	}
	if f.found.Name != Shell {
		f.devices()
	}
	f.envelope()
	return f.found
}

// finder gathers one launcher's answers and where they came from.
type finder struct {
	env   map[string]string
	facts Facts
	found Found
}

func (f *finder) recognise() Name {
	switch {
	case f.has("CONTAINER_ID") && f.has("NM_HOST"):
		f.found.Origins["launcher"] = "CONTAINER_ID"
		return YARN
	case f.has("NOMAD_ALLOC_ID"):
		f.found.Origins["launcher"] = "NOMAD_ALLOC_ID"
		return Nomad
	case f.has("SLURM_JOB_ID"):
		f.found.Origins["launcher"] = "SLURM_JOB_ID"
		return Slurm
	case f.has("KUBERNETES_SERVICE_HOST"):
		f.found.Origins["launcher"] = "KUBERNETES_SERVICE_HOST"
		return Kubernetes
	case f.has("INVOCATION_ID") && !f.inScope():
		f.found.Origins["launcher"] = "INVOCATION_ID"
		return Systemd
	}
	return Shell
}

// note keeps a sentence for whoever reads the agent's log.
func (f *finder) note(text string) { f.found.Notes = append(f.found.Notes, text) }

func (f *finder) has(name string) bool { return f.env[name] != "" }

// take copies the first variable of names that is set and notes it as the origin of what.
func (f *finder) take(to *string, what string, names ...string) {
	for _, name := range names {
		if v := f.env[name]; v != "" {
			*to = v
			f.found.Origins[what] = name
			return
		}
	}
}

// number is take for a whole number from 0; anything else counts as not given.
func (f *finder) number(to *int, what string, names ...string) {
	for _, name := range names {
		if n, err := strconv.Atoi(f.env[name]); err == nil && n >= 0 {
			*to = n
			f.found.Origins[what] = name
			return
		}
	}
}
