package conductor

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
)

// HeldError refuses a second agent of one index.
type HeldError struct {
	Instance registry.Instance
	Holder   registry.Member
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by pid %d on %s since %s", e.Instance, e.Holder.Pid, e.Holder.Host,
		e.Holder.Since.Format(time.RFC3339))
}

// DigestError refuses an agent with another definition.
type DigestError struct{ Have, Want string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("definition differs: this agent has digest %s, the app runs %s: another package, --set or "+
		"--template; muster plan shows this agent's", e.Have, e.Want)
}

// ProtoError refuses an agent whose build cannot be mixed into its run.
type ProtoError struct {
	Run        string
	Have, Want registry.Proto // of this build and of the run
}

func (e *ProtoError) Error() string {
	text := fmt.Sprintf("this muster speaks protocol %s, run %s has %s", e.Have, e.Run, e.Want)
	if e.Have.Now < e.Want.Min {
		return fmt.Sprintf("%s and takes no agent below %d: install the muster of the run's other agents on this host",
			text, e.Want.Min)
	}
	return fmt.Sprintf("%s: start this agent with a muster that speaks protocol %d, or begin a new run when it is over",
		text, e.Want.Now)
}

// TimesError refuses an agent whose times differ from its run's.
type TimesError struct{ Differ []registry.Difference }

func (e *TimesError) Error() string {
	fixed := true
	var differ []string
	for _, d := range e.Differ {
		differ, fixed = append(differ, d.String()), fixed && d.Fixed
	}
	text := "times differ: this agent has " + strings.Join(differ, "; ")
	if fixed {
		return text + ": they are fixed by the build: install the muster of the run's other agents on this host"
	}
	return text + ": give all agents of a run the same times"
}

// RunError refuses another run while one is unfinished.
type RunError struct{ Have, Want string }

func (e *RunError) Error() string {
	return fmt.Sprintf("run %s is not finished, run %s cannot begin", e.Have, e.Want)
}

// FinishedError carries the verdict of a finished run.
type FinishedError struct{ Verdict registry.Verdict }

func (e *FinishedError) Error() string {
	return fmt.Sprintf("run %s is over: %s", e.Verdict.Run, e.Verdict.Outcome)
}

// IndexError refuses an index that the app does not have.
type IndexError struct {
	Instance registry.Instance
	Count    int // how many instances the component has; -1: no such component
}

func (e *IndexError) Error() string {
	if e.Count < 0 {
		return fmt.Sprintf("%s: the app has no component %s", e.Instance, e.Instance.Component)
	}
	return fmt.Sprintf("%s: the app has %d of %s", e.Instance, e.Count, e.Instance.Component)
}
