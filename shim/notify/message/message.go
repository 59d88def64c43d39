package message

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/notify"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/wording"
)

// Loading is the message until the definition is there, which says how long the rest may take.
func Loading(ref string, begun, now time.Time) notify.Message {
	return notify.Message{Status: "loading " + ref, Wait: begun.Add(usualStage).Sub(now)}
}

// Agent is what a message is made from: where an agent stands now.
type Agent struct {
	State    machine.State
	Instance status.Instance
	Absent   []string // members that the barrier waits for
	Started  time.Time
	Stage    time.Duration // limit of staging; 0: none
	Leaving  bool          // outputs are left, or to be settled
	Ready    bool          // the manager was told that the service is ready
	Stopping bool          // the manager was told that it ends
}

// At is what the service manager is told of an agent.
func (a Agent) At(now time.Time) notify.Message {
	return notify.Message{Status: statusLine(a.Instance, a.Absent), Wait: a.patience(a.Instance.Since, now)}
}

// AtBarrier tells that the barrier is closed and this agent waits at it.
func AtBarrier(s machine.State) bool {
	return (s.Phase == machine.Installed || s.Phase == machine.Waiting) && s.Directive.Act == registry.ActWait
}

// statusLine is an instance in a line, as `systemctl status` shows it.
func statusLine(in status.Instance, absent []string) string {
	text := in.Phase
	if in.Component != "" {
		text = in.Instance + " " + in.Phase
	}
	var more []string
	add := func(format string, args ...any) { more = append(more, fmt.Sprintf(format, args...)) }
	if in.Generation > 0 {
		add("generation %d", in.Generation)
	}
	if in.Attempt > 1 {
		add("attempt %d", in.Attempt)
	}
	if len(absent) > 0 {
		add("missing %s", wording.First(absent, mostAbsent))
	}
	if in.Progress != nil {
		add("progress %.0f %%", *in.Progress*100)
	}
	if in.CheckpointStep != nil {
		add("checkpoint of step %d", *in.CheckpointStep)
	}
	if in.AwaySince != nil {
		add("registry unreachable since %s", in.AwaySince.Format(time.RFC3339))
	}
	if in.Cause != "" {
		add("%s", in.Cause)
	}
	if len(more) == 0 {
		return text
	}
	return oneStatus(text + ": " + strings.Join(more, ", "))
}

// oneStatus is a text as a manager takes it: one short line.
func oneStatus(text string) string { return wording.Short(strings.Join(strings.Fields(text), " ")) }

// Last is the status that an ended agent keeps in `systemctl status`: the verdict if there is one, else why it ends.
func Last(final machine.State) string {
	if v := final.Directive.Verdict; v != nil {
		text := string(v.Outcome)
		if v.Class != "" {
			text += " (" + string(v.Class) + ")"
		}
		return oneStatus(exit.WithCause(text, v.Cause))
	}
	if final.Terms > 0 {
		return "interrupted: it resumes when it is started again"
	}
	return oneStatus(final.Cause)
}

// OfError is the status of an agent that could not begin.
func OfError(err error) string {
	if _, silent := errors.AsType[exit.Silent](err); err == nil || silent {
		return ""
	}
	return oneStatus(err.Error())
}

// patience is for how long the manager is asked to wait beyond its own limits: until the current work reaches muster's
// own limit. After READY=1 the manager has limits again only for a stop.
func (a Agent) patience(since, now time.Time) time.Duration {
	s := a.State
	stage := cmp.Or(max(a.Stage, 0), endlessStage)
	ends := s.Terms > 0 || a.Stopping
	limit := time.Duration(0)
	switch {
	case ends && a.Leaving:
		limit = stage
	case ends && s.Phase == machine.Stopping:
		limit = s.StopGrace() + proofPatience
	case ends && (s.Phase == machine.Leaving || s.Phase.Final()):
		limit = member.LeavePatience + proofPatience
	case ends, a.Ready:
	case s.Phase == machine.Starting:
		limit = member.StartPatience
	case s.Phase == machine.Staging:
		limit = stage
	case s.Phase == machine.Installed, s.Phase == machine.Waiting:
		limit = s.Policy.Barrier + barrierSlack
	}
	if limit <= 0 || since.IsZero() && s.Phase != machine.Starting {
		return 0
	}
	if since.IsZero() {
		since = a.Started
	}
	return max(0, since.Add(limit).Sub(now))
}

const (
	// usualStage is the default of muster.stage.timeout.
	usualStage = 30 * time.Minute
	// barrierSlack is how much longer than the conductor an agent waits at the barrier.
	barrierSlack = 5 * time.Minute
	// endlessStage is asked for where staging has no limit; after it the manager's own limit counts.
	endlessStage = time.Hour
	// proofPatience is the time, beyond a grace, to kill and to prove that no process is left.
	proofPatience = 10 * time.Second
)

// mostAbsent is how many absent members a status names.
const mostAbsent = 8
