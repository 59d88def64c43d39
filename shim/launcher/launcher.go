package launcher

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// Name is a launcher as plans, listings and member records print it.
type Name string

// Shell is the name for the absence of any launcher: a person starts agents.
const Shell Name = "shell"

// Relaunches tells whether this launcher starts a replacement when a container ends: an agent whose
// index is held by a live member then waits as standby. From a shell it is refused.
func (n Name) Relaunches() bool { return n != Shell && n != "" }

// Launcher is one launcher as its agents meet it.
type Launcher struct {
	Name Name
	// KillWindow is the time in seconds between this launcher's stop signal and its SIGKILL, as assumed without
	// `--kill-window`; no variable holds it. 0: there is none.
	KillWindow float64
	// FlatLogs tells that it collects the files of Found.LogDir at the end, and none of the folders in it.
	FlatLogs bool
	// KeepsOutput tells that it keeps what its agents write to stdout and stderr, so that the process's output belongs
	// there, too.
	KeepsOutput bool
	// Recognise names the variable that shows that this launcher has started us; empty: it has not.
	Recognise func(f *Finder) string
	// Read reads what it granted.
	Read func(f *Finder)
	// Actions are what it does for each of Answers.
	Actions map[Answer]Action
	// Survival is what an agent finds as it was when this launcher starts it again on the same host.
	Survival plan.Survival
}

// None is what starts agents where no launcher does.
var None = Launcher{
	Name: Shell,
	Actions: map[Answer]Action{
		Done:      {"", "nothing is left to do"},
		Again:     {"", "start the same command again: the run goes on"},
		Elsewhere: {"", "start it on another host"},
		Never:     {"", "mend what the verdict says first"},
	},
	Survival: plan.Survival{Keeps: []string{}},
}

// Facts are what the variables do not say; all of them may be left empty.
type Facts struct {
	Machine  string        // what tells this machine from others, for names that are the machine's own
	Cgroup   string        // text of /proc/self/cgroup, cgroups(7)
	Envelope plan.Envelope // limits of the agent's own cgroup
	User     string        // name of the user that the agent runs as
	// GPUs are the device nodes of GPUs, and whether the agent's own cgroup lets it use them.
	GPUs map[string]bool
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
	Volume     string // made for this agent alone, perhaps open to others: its folders lie in it
	Allocation plan.Allocation
	// Origins name the variable or file behind each answer: `host`, `index`, `ports.http`, ….
	Origins map[string]string
}

// Detect recognises the launcher, the first of all that does, and reads what it granted. Launchers that start others
// come last: a NodeManager, a Nomad client and a slurmd are themselves services of systemd or run in pods.
func Detect(all []Launcher, env map[string]string, facts Facts) Found {
	f := Finder{Env: env, Facts: facts, Found: Found{
		Index: -1, Rank: -1, Origins: map[string]string{},
		Allocation: plan.Allocation{
			Ports: map[string]int{}, Devices: []string{}, User: facts.User, Vars: map[string]string{},
		},
	}}
	l := None
	for _, one := range all {
		if variable := one.Recognise(&f); variable != "" {
			l = one
			f.Found.Origins["launcher"] = variable
			f.Found.Origins["kill_window"] = "assumed for " + string(l.Name)
			break
		}
	}
	f.Found.Name, f.Found.Allocation.Launcher, f.Found.Allocation.KillWindow = l.Name, string(l.Name), l.KillWindow
	if l.Read != nil {
		l.Read(&f)
		if len(f.Found.Allocation.Devices) == 0 {
			f.devices()
		}
	}
	f.envelope()
	return f.Found
}

// Finder gathers one launcher's answers and where they came from.
type Finder struct {
	Env   map[string]string
	Facts Facts
	Found Found
}

// By recognises a launcher by a variable that is set.
func By(variable string) func(f *Finder) string {
	return func(f *Finder) string {
		if f.Has(variable) {
			return variable
		}
		return ""
	}
}

// Note keeps a sentence for the agent's log.
func (f *Finder) Note(text string) { f.Found.Notes = append(f.Found.Notes, text) }

// Has tells that a variable is set.
func (f *Finder) Has(name string) bool { return f.Env[name] != "" }

// Take copies the first variable of names that is set and notes it as the origin of what.
func (f *Finder) Take(to *string, what string, names ...string) {
	for _, name := range names {
		if v := f.Env[name]; v != "" {
			*to = v
			f.Found.Origins[what] = name
			return
		}
	}
}

// Number is take for a whole number from 0; anything else counts as not given.
func (f *Finder) Number(to *int, what string, names ...string) {
	for _, name := range names {
		if n, err := strconv.Atoi(f.Env[name]); err == nil && n >= 0 {
			*to = n
			f.Found.Origins[what] = name
			return
		}
	}
}

// First is the first entry of a list.
func First(list, separator string) string {
	head, _, _ := strings.Cut(list, separator)
	return strings.TrimSpace(head)
}
