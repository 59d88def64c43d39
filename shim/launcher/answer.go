package launcher

import (
	"slices"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// Answer is what a launcher is to do when an agent has ended.
type Answer string

// The answers. Again: with the same run, wherever there is room; Elsewhere: likewise, and if the whole run has ended
// so, with a new one.
const (
	Done      Answer = "done"
	Again     Answer = "again"
	Elsewhere Answer = "elsewhere"
	Never     Answer = "never"
)

// Answers are all of them, in the order in which people read them.
func Answers() []Answer { return []Answer{Done, Again, Elsewhere, Never} }

// Code is one exit code of an agent, as job files have agents end (ExitMap).
type Code struct {
	Code   int
	Answer Answer
	Why    string
}

// codes are the exit codes of an agent (`muster help exit-codes`) by what the verdict's class asks of a launcher. The
// process's own codes are not among them: ExitMap has turned them into 93.
var codes = []Code{
	{0, Done, "succeeded, or stopped by muster stop"},
	{64, Never, "the command line is wrong"},
	{65, Never, "the definition is wrong, or another than the gang's"},
	{69, Again, "the registry is out of reach, or data or an image is"},
	{70, Never, "a fault of muster's own"},
	{75, Elsewhere, "the host or a GPU was lost, or the container was taken away"},
	{76, Never, "a time limit of the app's"},
	{77, Never, "not permitted here"},
	{93, Never, "the program failed or ran out of memory, here or in another container"},
	{130, Again, "interrupted: stopped by the launcher, resumes when it is launched again"},
	{137, Again, "the agent was killed"},
	{143, Again, "interrupted, likewise"},
}

// Codes are all of them, sorted by number.
func Codes() []Code { return slices.Clone(codes) }

// ExitMap is the `--exit-code-map` of all job files. It turns the process's own exit codes into one that says "do not
// retry": a program's 75 is none of ours.
const ExitMap = "app-error=93,out-of-memory=93"

// CodesOf are the codes with these answers, sorted.
func CodesOf(answers ...Answer) []int {
	var out []int
	for _, c := range codes {
		if slices.Contains(answers, c.Answer) {
			out = append(out, c.Code)
		}
	}
	return out
}

// AnswerTo is what a verdict of that class asks of a launcher, whatever number the program itself has ended with. A
// class that decides no verdict of a failure asks for nothing: "".
func AnswerTo(class registry.Class) Answer {
	switch class {
	case registry.ClassHost, registry.ClassGPU, registry.ClassPreempted:
		return Elsewhere
	case registry.ClassNetwork, registry.ClassData, registry.ClassImage:
		return Again
	case registry.ClassApp, registry.ClassOOM, registry.ClassTimeout, registry.ClassDefinition,
		registry.ClassNotPermitted, registry.ClassMuster:
		return Never
	case registry.ClassNone, registry.ClassStopped:
		return Done
	case registry.ClassLauncher, registry.ClassRegistry, registry.ClassFlex, registry.ClassMismatch: // reports only
	}
	return ""
}

// Action is a plan.Told without classes and codes, which are the same for all launchers.
type Action struct{ By, Does string }

// tells are the answers in this launcher's language, one for each of Answers. They hold for the job files that render
// writes; who writes one by hand finds here what to write.
func (l Launcher) tells() []plan.Told {
	var told []plan.Told
	for _, a := range Answers() {
		d := l.Actions[a]
		told = append(told, plan.Told{
			Answer: string(a), Classes: classesOf(a), Codes: CodesOf(a), By: d.By, Does: d.Does,
		})
	}
	return told
}

// classesOf are the classes of a verdict that ask for this answer, a verdict without one left out.
func classesOf(a Answer) []string {
	out := []string{}
	for _, class := range []registry.Class{
		registry.ClassStopped, registry.ClassApp, registry.ClassOOM, registry.ClassGPU, registry.ClassHost,
		registry.ClassNetwork, registry.ClassData, registry.ClassImage, registry.ClassPreempted,
		registry.ClassTimeout, registry.ClassDefinition,
		registry.ClassNotPermitted, registry.ClassMuster,
	} {
		if AnswerTo(class) == a {
			out = append(out, string(class))
		}
	}
	return out
}

// What may outlive a restart on the same host.
const (
	KeptIndex     = "index"
	KeptPorts     = "ports" // of the launcher's; the agent asks for its own again in any case
	KeptHost      = "address"
	KeptContainer = "container id"
	KeptWork      = "work folder"
	KeptLogs      = "log folder"
)
