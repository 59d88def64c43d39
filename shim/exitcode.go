package shim

import "github.com/muster-agent/muster/registry"

// Exit codes of an agent; the classes' own are in classCodes.
const (
	CodeUsage      = 64
	CodeDefinition = 65
	CodeRegistry   = 69
	CodeInternal   = 70
	CodeHeld       = 75
	CodeTimeout    = 76
	CodeForbidden  = 77
	CodeOther      = 93 // the job failed because of another instance
)

// Code maps a verdict to the exit code of the agent of instance me, or of `muster run` when me is
// empty: that speaks for the instance that failed first.
func Code(v registry.Verdict, me string) int {
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
			return CodeOther
		}
		return ShellCode(v.Exit)
	case registry.ClassHost, registry.ClassGPU, registry.ClassPreempted:
		return CodeHeld
	case registry.ClassNetwork, registry.ClassData, registry.ClassImage:
		return CodeRegistry
	case registry.ClassTimeout:
		return CodeTimeout
	case registry.ClassDefinition:
		return CodeDefinition
	case registry.ClassNotPermitted:
		return CodeForbidden
	case registry.ClassNone, registry.ClassStopped, registry.ClassMuster:
	case registry.ClassLauncher, registry.ClassRegistry, registry.ClassFlex, registry.ClassMismatch: // they decide no verdict
	}
	return CodeInternal
}

// ShellCode is a process's end as a shell shows it; 1 where there is nothing to show or only a 0.
func ShellCode(x *registry.MemberExit) int {
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

// ExitCode is what the agent in this final state ends with.
func (s State) ExitCode() int {
	switch {
	case s.Code >= 0 && (s.Directive.Act != registry.ActStop || s.Phase == Superseded):
		return s.Code
	case s.Directive.Verdict != nil:
		return Code(*s.Directive.Verdict, s.Instance.String())
	case s.Code >= 0:
		return s.Code
	}
	return CodeInternal
}
