package sandbox

import (
	"errors"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// Event is what a guard reports of its process. Attempt is the number of the start it belongs to.
//
// Order of one start that happened: Started, Exited, Empty; Lingers and Adopted come between the first two. Start
// returns the error of a start that did not happen.
type Event interface{ event() }

// The events.
type (
	// Started says that the exec has happened. Ticks is the start in clock ticks after boot; Own is the process's
	// number in the guard's pid namespace, by which it knows itself.
	Started struct {
		Attempt int
		PID     int
		Own     int
		Ticks   uint64
	}
	// Lingers says that the main process of a start with Spec.Linger has exited with 0 and that Left of its descendants
	// live. They continue, and the guard waits for Adopt, Finish or Kill. When the last of them ends before that, it is
	// sent once more, with 0; and again when an adopted process has ended whose parent alone knows how. Ended is how
	// something that the main process left had ended before this event and after the one before: the first that failed,
	// else the last; nil: no such end was seen.
	Lingers struct {
		Attempt int
		Left    int
		Ended   *Exit
	}
	// Adopted says that a living process has become the main one. Ticks is its start in clock ticks after boot.
	Adopted struct {
		Attempt int
		PID     int // in the agent's pid namespace
		Ticks   uint64
	}
	// Exited says how the main process ended. What it left behind is being killed.
	Exited struct {
		Attempt int
		Exit    Exit
	}
	// Empty says that no descendant exists, which is proved. It also answers Kill. LogsComplete says that all bytes
	// written by them are in the log files; it is false only when the disk hung for 10 s.
	Empty struct {
		Attempt      int
		LogsComplete bool
	}
	// Stuck names a process that has not died 5 s after SIGKILL; repeated every 10 s.
	Stuck struct {
		Attempt int
		proc.StuckProcess
	}
	// LogLost counts bytes that could not be written since the last such event.
	LogLost struct {
		Attempt int
		Stream  string // stdout or stderr
		Bytes   int64
		Err     error
	}
	// DeadMan says that the guard was not fed in time: it kills everything and ends.
	DeadMan struct{ Attempt int }
	// Gone says that the guard ended without Close. What it left has been killed, Exited and
	// Empty were sent if they were due; Left are those that would not die. It is the last event.
	Gone struct {
		Err  error
		Left []proc.StuckProcess
	}
)

func (Started) event() {}
func (Lingers) event() {}
func (Adopted) event() {}
func (Exited) event()  {}
func (Empty) event()   {}
func (Stuck) event()   {}
func (LogLost) event() {}
func (DeadMan) event() {}
func (Gone) event()    {}

// StartError says why a start did not happen.
type StartError struct {
	Act  string // exec, chdir, set limit nofile, …
	Path string // what it was done to; may be empty
	Hint string
	Err  error // a syscall.Errno: errors.Is(err, fs.ErrNotExist) works
}

func (e *StartError) Error() string {
	s := e.Act
	if e.Path != "" {
		s += " " + e.Path
	}
	s += ": " + e.Err.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *StartError) Unwrap() error { return e.Err }

// The conditions that callers branch on.
var (
	// errBusy refuses a Start while a process, or what it left, exists.
	errBusy = errors.New("a process is still there")
	// ErrNotOurs refuses to adopt a process that is no descendant and none of those that ended last.
	ErrNotOurs = errors.New("not a process of this start")
	// ErrGone says that the guard has ended.
	ErrGone = errors.New("guard is gone")
	// ErrLeft says that processes which a guard has left did not die: a start that was under way is not over.
	ErrLeft = errors.New("processes of the guard are left")
	// errDeadMan is why a guard that was not fed in time has ended.
	errDeadMan = errors.New("dead-man timer ran out")
)
