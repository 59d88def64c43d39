package exit

import (
	"errors"

	"github.com/muster-agent/muster/registry"
)

// Exit codes of muster, after sysexits(3) where that has one. `muster help exit-codes` says when each is used.
const (
	Usage      = 64
	Definition = 65
	Registry   = 69
	Internal   = 70
	Held       = 75
	Timeout    = 76
	Forbidden  = 77
	other      = 93 // the job failed because of another instance

	CtrlC       = 130
	Interrupted = 143 // no agent of the run is left, and it has no verdict
)

// OfRegistry is err with the code of a registry's error: Forbidden if the registry refuses the token, else Registry.
func OfRegistry(err error) error {
	if errors.Is(err, registry.ErrForbidden) {
		return With(Forbidden, err)
	}
	return With(Registry, err)
}

// Of maps a verdict to the exit code of the agent of instance me, or of `muster run` when me is
// empty: that speaks for the instance that failed first.
func Of(v registry.Verdict, me string) int {
	switch {
	case v.Outcome == registry.Succeeded:
		return 0
	case v.Outcome == registry.Stopped && v.By == "interrupt" && me == "":
		return 130
	case v.Outcome == registry.Stopped:
		return 0
	}
	switch v.Class {
	case registry.ClassApp, registry.ClassOOM:
		if me != "" && me != v.First {
			return other
		}
		return shellCode(v.Exit)
	case registry.ClassHost, registry.ClassGPU, registry.ClassPreempted:
		return Held
	case registry.ClassNetwork, registry.ClassData, registry.ClassImage:
		return Registry
	case registry.ClassTimeout:
		return Timeout
	case registry.ClassDefinition:
		return Definition
	case registry.ClassNotPermitted:
		return Forbidden
	case registry.ClassNone, registry.ClassStopped, registry.ClassMuster:
	// they decide no verdict
	case registry.ClassLauncher, registry.ClassRegistry, registry.ClassFlex, registry.ClassMismatch:
	}
	return Internal
}

// shellCode is a process's end as a shell shows it; 1 where there is nothing to show or only a 0.
func shellCode(x *registry.MemberExit) int {
	switch {
	case x == nil:
		return 1
	case x.Signal != 0:
		return 128 + x.Signal
	case x.Code != nil && *x.Code != 0:
		return *x.Code
	}
	return 1
}
