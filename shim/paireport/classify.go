package paireport

import (
	"slices"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// The versions of PAI whose tables differ; 0.5 has no table of its own.
const (
	v05 = "0.5"
	v14 = "0.14"
)

// Entry is one row of an exit table, in PAI's words.
type Entry struct {
	Code     int
	Phrase   string
	Type     string // USER_FAILURE, PLATFORM_FAILURE, …
	Behavior string // whether the failure would happen again: TRANSIENT…, NON_TRANSIENT or PERMANENT, UNKNOWN
	Reaction string // ALWAYS_RETRY, ALWAYS_BACKOFF_RETRY, RETRY_TO_MAX, NEVER_RETRY
}

// endKind says whether the process ended by itself.
type endKind int

// The kinds of end.
const (
	ByItself endKind = iota // the process ended by itself, or never ran
	ByUser                  // the user stopped the run: muster stop, Ctrl-C
	WithApp                 // the process was stopped because the run ended
)

// Facts are what is known about the end of one instance.
type Facts struct {
	Code    *int // the process's own exit code; nil: a signal killed it, or it never ran
	Signal  int  // 0: none
	OOM     bool
	Class   registry.Class // the cause by the evidence; empty: the program itself
	Message string         // the agent's description of the end
	End     endKind

	// The texts of the report.
	Reason   string // what happened
	Solution string // what to do
	User     string // the last output of the process
	Runtime  string // the agent's log
}

// tableOf is the exit table of a version of PAI: 0.5, 0.14, 1.
func tableOf(version string) []Entry {
	if version == v05 || version == v14 {
		return spec014()
	}
	return spec1()
}

// entryOf is the row of a code. A code that the table lacks gets the row that PAI gives it.
func entryOf(version string, code int) Entry {
	table := tableOf(version)
	for _, other := range []int{code, unlisted(code)} {
		if at := slices.IndexFunc(table, func(e Entry) bool { return e.Code == other }); at >= 0 {
			return table[at]
		}
	}
	return Entry{Code: code}
}

// unlisted is the code whose row holds for all codes that the table lacks.
func unlisted(code int) int {
	if code > 0 {
		return 256
	}
	return -8000
}

// Classify finds the row of an end. The first rule of the version that matches decides.
func Classify(version string, f Facts) Entry {
	if version == v05 || version == v14 {
		return entryOf(version, f.code014())
	}
	return entryOf(version, f.code1())
}

// UserCode is the exit code that a shell reports for the process; nil: no process ran.
func (f Facts) UserCode() *int {
	switch {
	case f.Signal != 0:
		return new(128 + f.Signal)
	case f.Code != nil:
		return new(*f.Code)
	}
	return nil
}

// code014 applies the rules of 0.14. A process's own exit code becomes 255 unless it stands for a known signal, so
// docker's own failure (193) appears only if no process ran. PAI's disk cleaner (198) has no counterpart in muster.
func (f Facts) code014() int {
	user := f.UserCode()
	switch {
	case f.End == ByUser:
		return -7351
	case f.End == WithApp:
		return -7400
	case user == nil:
		return f.launcher014()
	case *user == 0:
		return 0
	case !signalled(*user, 2, 4, 6, 7, 8, 9, 11, 13, 15):
		return 255
	case f.OOM:
		return 196
	}
	return *user
}

// launcher014 is the code of 0.14's launcher for a container without a process.
func (f Facts) launcher014() int {
	switch f.Class {
	case registry.ClassHost, registry.ClassRegistry:
		return -7111
	case registry.ClassPreempted, registry.ClassLauncher:
		return -7120
	case registry.ClassTimeout:
		return -7252
	case registry.ClassNetwork:
		return -7103
	case registry.ClassDefinition:
		return -7251
	case registry.ClassStopped:
		return -7351
	case registry.ClassFlex:
		return -7123
	case registry.ClassMuster, registry.ClassMismatch:
		return 256
	case registry.ClassNone, registry.ClassApp, registry.ClassOOM, registry.ClassGPU, registry.ClassData,
		registry.ClassImage, registry.ClassNotPermitted:
	}
	return 193
}

// code1 applies the rules of 1.x in the order of its spec, as far as an exit code or the agent's evidence can tell.
func (f Facts) code1() int {
	user := f.UserCode()
	switch {
	case f.End == ByUser:
		return -210
	case f.End == WithApp:
		return -220
	case user == nil:
		return f.controller1()
	case *user == 0:
		return 0
	case f.OOM && signalled(*user, 9): // the controller sees it before its runtime can
		return -1200
	case f.Class == registry.ClassTimeout:
		return -1004
	case f.Class == registry.ClassGPU && strings.Contains(strings.ToUpper(f.Message), "ECC"):
		return 128
	case signalled(*user, 2, 3, 4, 6, 7, 8, 9, 11, 13, 15):
		return *user
	}
	return 255
}

// controller1 is the code of 1.x's controller for a container without a process.
func (f Facts) controller1() int {
	switch f.Class {
	case registry.ClassHost, registry.ClassRegistry:
		return -1001
	case registry.ClassPreempted, registry.ClassLauncher:
		return -1003
	case registry.ClassTimeout:
		return 251
	case registry.ClassNetwork:
		return 253
	case registry.ClassImage:
		return 254
	case registry.ClassGPU:
		return -1205
	case registry.ClassDefinition:
		return -1100
	case registry.ClassNotPermitted:
		return -1005
	case registry.ClassStopped:
		return -210
	case registry.ClassFlex:
		return -230
	case registry.ClassMuster, registry.ClassMismatch:
		return 256
	case registry.ClassNone, registry.ClassApp, registry.ClassOOM, registry.ClassData:
	}
	return -1204
}

// signalled tells whether a shell reports one of these signals by the code.
func signalled(code int, signals ...int) bool { return slices.Contains(signals, code-128) }
