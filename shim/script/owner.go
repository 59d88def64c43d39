package script

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// Left is what is known of a start whose START has ended with 0: what START has left behind, then what remains of it.
type Left struct {
	Up     string // muster.up
	Alive  int    // processes that START has left and that live
	Held   bool   // and that were the instance until now, which is the second look
	Ended  *End   // of what START has left: the first that failed, else the last; nil: none was seen to end
	PIDs   []PID  // pid files that name another process than START, in the order of their weight: pid_file first
	Own    bool   // a pid file names START itself
	Lost   *PID   // the process that was the instance and has ended while its parent, another one, lived on
	Asks   bool   // there is a STATUS, and it is asked
	Served bool   // STATUS has said yes in this start
}

// End is how a process ended: by itself with Code, or by Signal.
type End struct{ Code, Signal int }

// forced tells that another process has ended it, and that it says so: by the signal, or as a shell and a JVM do, by
// 128 and its number.
func (e *End) forced() bool {
	by := []int{1, 2, 9, 13, 15} // HUP, INT, KILL, PIPE, TERM
	return e != nil && slices.Contains(by, max(e.Signal, e.Code-128))
}

// String says for the log how it ended.
func (e *End) String() string {
	switch {
	case e == nil:
		return "none seen"
	case e.Signal != 0:
		return "signal " + strconv.Itoa(e.Signal)
	}
	return "exit code " + strconv.Itoa(e.Code)
}

// OK tells that it ended well.
func (e *End) OK() bool { return e != nil && e.Code == 0 && e.Signal == 0 }

// PID is the content of one pid file.
type PID struct {
	File string
	PID  int
	Main bool // the file is pid_file of the configuration, which names the program and no helper
	// Over is how the process ended, where that is known; nil: it lives, or nobody knows.
	Over *End
}

// Owner is what an instance is once START has ended with 0, and so what its end is.
type Owner string

// The owners. An instance always has one: until its start is over it is a process that lives or a STATUS that is asked.
const (
	Named  Owner = "named"  // the process of the first pid file: its end is the instance's
	Rest   Owner = "rest"   // what START has left: the end of the last of them is the instance's
	Status Owner = "status" // STATUS alone: while it says yes the instance is up, wherever its processes are
	Over   Owner = "over"   // the start is over, as the Outcome says
)

// Outcome is how a start is over. The zero value is a success.
type Outcome struct {
	End *End   // of the process that was the instance; nil: none is known
	Why string // it has failed though no End says so
	Tip string // what else to say of an End that is a failure: what the author can declare
}

// OK tells that the instance has succeeded.
func (o Outcome) OK() bool { return o.Why == "" && (o.End == nil || o.End.OK()) }

// Owner decides what the instance is when START has ended with 0, and again when nothing is left of what START has left
// behind.
//
// A process that lives is the instance: the one that a pid file names, else all that START has left. Where none lives
// STATUS has the word, if there is one. Without a STATUS the ends that were seen decide; where there were none, START
// was the program, and has run to its end.
func (l Left) Owner() (Owner, Outcome) {
	switch {
	case l.Up == appdef.UpStart:
		return Over, Outcome{}
	case l.Up == appdef.UpStatus && l.Asks:
		return Status, Outcome{}
	case l.Up == appdef.UpStatus:
		return Over, Outcome{Why: noStatus}
	case l.Alive > 0:
		return l.ofLiving()
	case l.Held && l.failed(): // what was the instance has failed: no STATUS makes up for it
		return Over, l.asEnded()
	case l.Asks && l.Up != appdef.UpProcess:
		return Status, Outcome{}
	}
	return Over, l.withoutProcess()
}

// ofLiving decides where a process of START's lives. A pid file whose process has ended well was a launcher's, and one
// whose process was ended while START ran, a helper's.
func (l Left) ofLiving() (Owner, Outcome) {
	living := slices.IndexFunc(l.PIDs, func(p PID) bool { return p.Over == nil })
	crashed := slices.IndexFunc(l.PIDs, func(p PID) bool { return p.Over != nil && !p.Over.OK() && !p.Over.forced() })
	switch {
	// held: its parent, which lives, may put another in its place
	case crashed >= 0 && !l.Held && (living < 0 || l.PIDs[crashed].Main):
		return Over, Outcome{End: l.PIDs[crashed].Over}
	case living >= 0:
		return Named, Outcome{}
	}
	return Rest, Outcome{}
}

const (
	noStatus = "START ended with 0 and there is no STATUS to ask, which muster.up=status needs: add one to the " +
		"package, or take muster.up=process"
	nothingLeft = "START ended with 0 and left no process, which muster.up=process wants: keep the program running " +
		"after START, or take muster.up=start where START is the program itself"
)

// Denied is the outcome of a start whose only owner was STATUS, once STATUS has said no for good; h is what it has said
// since START ended. One that STATUS knew while START ran, and not once later, was START itself: a program that has run
// to its end.
func (l Left) Denied(h Health) Outcome {
	if l.Up == appdef.UpStatus || h.Yes {
		return Outcome{Why: h.Cause()}
	}
	out := l.withoutProcess()
	if out.OK() && !l.Served && !l.Own {
		out.Why = "START ended with 0 and left no process, and " + h.Cause() + hint
	}
	return out
}

// hint is what an author can do whose START is the program.
const hint = "; where START is the program itself, set muster.up=start"

// Doubt is what else to say of an instance that STATUS denies while processes that START has left are its owner: they
// may be a finished program's.
func (l Left) Doubt() string {
	if l.Up == appdef.UpProcess || l.Served {
		return ""
	}
	return "; START ended with 0 and left processes that no pid file names: let pid_file name the file to which the " +
		"service writes its number (muster.up=start is for a START that is the program itself, and ends what it left)"
}

// failed tells that a process of START's has failed. What was ended while START ran does not count, for START was there
// and said 0: it has ended its own helper.
func (l Left) failed() bool { return l.Ended != nil && !l.Ended.OK() && (l.Held || !l.Ended.forced()) }

// asEnded is the end of what START has started as that of the instance.
func (l Left) asEnded() Outcome {
	out := Outcome{End: l.Ended}
	if !out.OK() && l.Up != appdef.UpProcess {
		out.Tip = "a process that START had started ended so; where that was a helper, let pid_file name the file to " +
			"which the program writes its number, or set muster.up=start if START is the program itself"
	}
	return out
}

// withoutProcess is the outcome of a start that has no process and no STATUS.
func (l Left) withoutProcess() Outcome {
	switch {
	case len(l.PIDs) > 0 && l.PIDs[0].Over != nil && !l.PIDs[0].Over.OK():
		return Outcome{End: l.PIDs[0].Over}
	case l.failed():
		return l.asEnded()
	case len(l.PIDs) > 0 && l.PIDs[0].Over != nil:
		return Outcome{End: l.PIDs[0].Over}
	case l.Lost != nil && l.Lost.Over != nil:
		return Outcome{End: l.Lost.Over}
	case l.Lost != nil:
		return Outcome{Why: fmt.Sprintf("process %d of %s has ended, and its parent, which alone knows how, has ended "+
			"with 0: let the parent end with the process's exit code, or leave the pid file out",
			l.Lost.PID, l.Lost.File)}
	case l.Held && l.Ended != nil:
		return l.asEnded()
	case len(l.PIDs) > 0 && !l.Served: // else START has waited for its program, and it alone knows how that ended
		return Outcome{Why: fmt.Sprintf("START ended with 0 and left no process: process %d of %s is gone, or START "+
			"did not start it", l.PIDs[0].PID, l.PIDs[0].File)}
	case l.Held:
		return Outcome{Why: "what START had left behind is gone, and nobody saw how it ended"}
	case l.Up == appdef.UpProcess:
		return Outcome{Why: nothingLeft}
	}
	return Outcome{}
}
