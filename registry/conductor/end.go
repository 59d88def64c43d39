package conductor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
)

// conclude ends the run with this verdict, or restarts the whole gang if muster.retry allows: every instance starts
// again, also those that had ended, and all budgets are reset. True means that the step's effect is decided.
func (r *decision) conclude(v registry.Verdict) bool {
	next, rest, ok := r.c.Facts.again(r.d.Retries, v)
	if !ok {
		return r.only(r.end(v))
	}
	next.Gen = r.d.Gen + 1
	why := fmt.Sprintf(causeGangRestarted, v.Cause, r.c.Facts.ordinal(r.d.Retries, next, rest))
	r.d.Retries, r.d.Row, r.rest = next, 0, rest
	return r.rebuild(v.First, why, r.d.Budget.Fresh())
}

func (r *decision) end(v registry.Verdict) End { return ending(r.c, r.now, r.v, v) }

// ending is T12.
func ending(c State, now time.Time, view View, v registry.Verdict) End {
	n := nextDirective(c, view.Directive, now)
	v.Version, v.Run, v.Gen, v.At = 1, n.Run, n.Gen, wall(now)
	n.Act, n.Verdict, n.Why, n.First, n.Target = registry.ActStop, &v, v.Cause, v.First, nil
	if n.StopGrace = c.Facts.StopGrace.Seconds(); v.Outcome == registry.Stopped {
		n.StopGrace = cmp.Or(askedGrace(view.Asks), n.StopGrace)
	}
	return End{Index: view.DirectiveIndex, Directive: n, Verdict: v}
}

func stopped(c State, now time.Time, view View, a registry.Ask) End {
	cause := causeStopped
	if who := a.Args["who"]; who != "" {
		cause = fmt.Sprintf(causeStoppedBy, who)
	}
	return ending(c, now, view, registry.Verdict{
		Outcome: registry.Stopped, Class: registry.ClassStopped, Cause: cause,
		By: a.By,
	})
}

// noGrace stands for zero in a directive: there 0 means each instance's own grace.
const noGrace = 0.001

// askedGrace is the grace in seconds that a stop asks for; 0: the stop names none.
func askedGrace(asks []registry.Ask) float64 {
	for _, a := range asks {
		if g, err := strconv.ParseFloat(a.Args["grace"], 64); a.Kind == registry.AskStop && err == nil && g >= 0 {
			return max(g, noGrace)
		}
	}
	return 0
}

// advice is one line on how to mend a class of failure. exit is how the first process ended, or nil.
func advice(c registry.Class, app string, first registry.Instance, exit *registry.MemberExit) string {
	switch c {
	case registry.ClassOOM:
		return fmt.Sprintf("raise yarn.memory of %s, let it grow with muster.memory.autoscale, or make the program "+
			"use less", first.Component)
	case registry.ClassHost, registry.ClassPreempted:
		return "launch the app again: it resumes from its checkpoint"
	case registry.ClassGPU:
		if exit != nil && strings.Contains(exit.Why, noGPU) {
			return "ask for no GPUs, or launch the app where muster doctor shows some"
		}
		return "launch the app again, on another host if the device stays faulty"
	case registry.ClassNetwork:
		if exit != nil && exit.Code == nil && exit.Signal == 0 { // not even its ports were available
			return "widen --ports (or slider.allowed.ports, where it is set) or free some of them"
		}
		if exit != nil && strings.Contains(exit.Why, inUse) {
			return "have the program listen at a port that muster chose ($MUSTER_PORT), or see who holds its own: " +
				"ss -ltnp"
		}
		return "check that the addresses named in the log are reachable from that host"
	case registry.ClassData:
		if exit != nil && strings.Contains(exit.Why, noSpace) {
			return "free space on that file system, or give --work-dir a folder on another"
		}
		return "check that the input or output named in the log is there and may be read or written"
	case registry.ClassImage:
		return "check the image's name and credentials"
	case registry.ClassDefinition:
		if exit != nil && exit.Why != "" {
			return "" // the cause names the fault, which validate cannot always see: folders, files
		}
		return "muster validate names what is wrong with the definition"
	case registry.ClassNotPermitted:
		return "muster doctor says what this host permits, and what would change it"
	case registry.ClassMuster:
		return fmt.Sprintf("please report it with agent.log of %s", first)
	case registry.ClassApp, registry.ClassTimeout:
		if exit != nil && exit.Why != "" {
			return "" // the cause names the fault and where to read more
		}
	case registry.ClassNone, registry.ClassStopped:
	// no verdict has these classes
	case registry.ClassLauncher, registry.ClassRegistry, registry.ClassFlex, registry.ClassMismatch:
	}
	found := ""
	if exit != nil && exit.Code != nil {
		switch *exit.Code {
		case notExecutable:
			found = "a command was found that may not be executed: "
		case notFound:
			found = "a command or a shared library was not found: "
		}
	}
	return fmt.Sprintf("%ssee muster logs %s/%s --tail 20", found, app, first)
}

// What the kernel says of a full disk (ENOSPC), and of a port that another process has (EADDRINUSE).
const (
	noSpace = "no space left on device"
	inUse   = "address already in use"
)

// noGPU is what an agent says of a host without any (shim/gpu/grant).
const noGPU = "no GPU here"

// The exit codes of a shell that may not execute a command, and that does not find it (POSIX.1-2017, XCU 2.8.2); the
// latter also of glibc's loader without a library.
const (
	notExecutable = 126
	notFound      = 127
)
