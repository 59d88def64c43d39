package verdict

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

// Entry is one row of an exit table, in PAI's words. Empty columns are not in that version's table.
type Entry struct {
	Code     int
	Phrase   string
	Issuer   string // 0.14: who saw it
	Causer   string // 0.14: whose doing it was
	Type     string // USER_FAILURE, PLATFORM_FAILURE, …
	Stage    string // 0.14: RUNNING, …
	Behavior string // whether it would happen again: TRANSIENT…, NON_TRANSIENT or PERMANENT, UNKNOWN
	Reaction string // ALWAYS_RETRY, ALWAYS_BACKOFF_RETRY, RETRY_TO_MAX, NEVER_RETRY
	By       string // 1: what it is recognised by
}

// endKind says what ended a process that did not end by itself.
type endKind int

// The ends.
const (
	ByItself endKind = iota // or it never ran
	ByUser                  // muster stop, Ctrl-C
	WithApp                 // the verdict was another's
)

// Facts are what is known of the end of one instance.
type Facts struct {
	Code    *int // the process's own; nil: it was killed, or never ran
	Signal  int  // 0: none
	OOM     bool
	Class   registry.Class // what the evidence says; empty: the program's own doing
	Message string         // what the agent says of it
	End     endKind

	Reason   string // for the report: what happened
	Solution string // and what to do
	User     string // the end of what the process said
	Runtime  string // and of what its agent did
}

// tableOf is the exit table of a version of PAI: 0.5, 0.14, 1.
func tableOf(version string) []Entry {
	if version == v05 || version == v14 {
		return spec014()
	}
	return spec1()
}

// entryOf is the row of a code; a code that the table lacks is treated as PAI treats it.
func entryOf(version string, code int) Entry {
	table := tableOf(version)
	for _, other := range []int{code, unlisted(code)} {
		if at := slices.IndexFunc(table, func(e Entry) bool { return e.Code == other }); at >= 0 {
			return table[at]
		}
	}
	return Entry{Code: code}
}

func unlisted(code int) int {
	if code > 0 {
		return 256
	}
	return -8000
}

// Classify finds the row of an end by the rules of that version, the first that matches.
func Classify(version string, f Facts) Entry {
	if version == v05 || version == v14 {
		return entryOf(version, f.code014())
	}
	return entryOf(version, f.code1())
}

// UserCode is how a shell shows the process's own end; nil: no process ran.
func (f Facts) UserCode() *int {
	switch {
	case f.Signal != 0:
		return new(128 + f.Signal)
	case f.Code != nil:
		return new(*f.Code)
	}
	return nil
}

// code014 are the rules of 0.14. Its disk cleaner (198) has no counterpart here. A process's own code is 255 unless it
// is that of a known signal, so what its docker says of itself (193) is only said where no process ran.
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

// launcher014 are the codes of 0.14's launcher for what befell a container without a process.
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

// code1 are the rules of 1: its specs in order, as far as an exit code or what the agent knows makes them out.
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

// controller1 are the codes of 1's controller for what befell a container without a process.
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

// signalled tells that a code is a shell's for one of these signals.
func signalled(code int, signals ...int) bool { return slices.Contains(signals, code-128) }
