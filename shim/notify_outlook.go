package shim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/notify"
	"github.com/muster-agent/muster/shim/status"
)

// loading is the outlook until the definition is there, which says how long the rest may take.
func loading(ref string, begun time.Time) func() notify.Outlook {
	return func() notify.Outlook {
		return notify.Outlook{Status: "loading " + ref, Wait: time.Until(begun.Add(usualStage))}
	}
}

// outlook is what the service manager is told of this agent now.
func (a *agent) outlook() notify.Outlook {
	now, s, snapshot := time.Now(), a.loop.State(), a.snapshot()
	var absent []string
	if awaits(s) {
		absent = a.member.Absent(now)
	}
	return notify.Outlook{Status: statusLine(snapshot.Instance, absent), Wait: a.patience(s, snapshot.Instance.Since, now)}
}

// awaits tells that the barrier is closed and this agent stands at it.
func awaits(s machine.State) bool {
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
		add("missing %s", shortList(absent))
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

// oneStatus is a text as a manager takes it: one line, and not a long one.
func oneStatus(text string) string { return short(strings.Join(strings.Fields(text), " ")) }

// lastStatus is what stays of an agent in `systemctl status`: the verdict where there is one, else why it ends.
func lastStatus(final machine.State) string {
	if v := final.Directive.Verdict; v != nil {
		text := string(v.Outcome)
		if v.Class != "" {
			text += " (" + string(v.Class) + ")"
		}
		return oneStatus(exit.WithCause(text, v.Cause))
	}
	if final.Terms > 0 {
		return "interrupted: it goes on when it is started again"
	}
	return oneStatus(final.Cause)
}

// errorStatus is why an agent ends that never was one.
func errorStatus(err error) string {
	if _, silent := errors.AsType[exit.Silent](err); err == nil || silent {
		return ""
	}
	return oneStatus(err.Error())
}

// patience is for how long the manager is asked to wait beyond its own limits: until what is under way reaches muster's own.
// Once it is told that the service is ready, there are such limits again only when it is to stop.
func (a *agent) patience(s machine.State, since, now time.Time) time.Duration {
	leaves := a.data.leavesOutputs()
	stage := cmp.Or(max(a.app.Settings.StageTimeout.Duration(), 0), endlessStage)
	ends := s.Terms > 0 || a.notify.IsStopping()
	limit := time.Duration(0)
	switch {
	case ends && leaves:
		limit = stage
	case ends && s.Phase == machine.Stopping:
		limit = s.StopGrace() + proofPatience
	case ends && (s.Phase == machine.Leaving || s.Phase.Final()):
		limit = member.LeavePatience + proofPatience
	case ends, a.notify.IsReady():
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
		since = a.started
	}
	return max(0, since.Add(limit).Sub(now))
}

const (
	// usualStage is muster.stage.timeout where nothing is said.
	usualStage = 30 * time.Minute
	// barrierSlack is how much longer than the conductor an agent waits at the barrier by itself.
	barrierSlack = 5 * time.Minute
	// endlessStage is how long staging without a limit is waited for: a manager's own limit counts then.
	endlessStage = time.Hour
	// proofPatience is what it takes, beyond a grace, to kill and to prove that nothing is left.
	proofPatience = 10 * time.Second
)

// mostAbsent is how many names a status has.
const mostAbsent = 8

func shortList(names []string) string {
	if more := len(names) - mostAbsent; more > 0 {
		names = append(slices.Clone(names[:mostAbsent]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
