package guard

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Version of the protocol, sent in Hello.
const Version = 6

// Descriptors of the guard at its start, beside /dev/null as 0, 1, 2.
const (
	fdLifeline = 3 // read end of a pipe: its end is the agent's death
	FDSocket   = 4 // SOCK_SEQPACKET to the agent
)

// Kind says what a message is. The meaning of A, B and C:
//
//	agent → guard
//	Start    descriptors: a sealed memfd (Payload), the folder of the logs, [stdin], [stdout], [procs]
//	Signal   A signal, to the main process only; while a start is held, which has none, to all that it left
//	Kill     kill every descendant until none is left; answered by Empty
//	Feed     A CLOCK_BOOTTIME ns at which the dead-man timer ends everything; 0 disarms; not armed at first
//	Exec     A exec, B rows, C columns of its terminal; descriptors: a sealed memfd, then stdin, stdout,
//	         stderr unless the payload says Terminal, [procs]
//	ExecSig  A exec, B signal, to the process group that its main process leads
//	Adopt    A request, B pid, which becomes the main process of a start that lingers; answered by Done
//	Finish   A request; a start that lingers ends as others do; answered by Done
//	Ended    A request, B pid; how it ended, if it is one of the last that were reaped since Started, or from
//	         Linux 6.15 on the last adopted one that its own parent has reaped; answered by Done
//	Sweep    A request; while no start is under way kill every descendant; answered by Done when none is left
//	ExecKill A request, B exec, Text its mark; kill what it started; answered by Done when none is left
//
//	procs is optional: a cgroup.procs file, open for writing, into whose cgroup the child goes first of all. Of Start,
//	stdin and stdout are there when the payload says so: the agent's own, in place of /dev/null and of the log.
//
//	guard → agent
//	Hello    A Version; waiting for orders
//	Started  A pid, B start in clock ticks after boot; the exec has happened
//	Exited   A wait status and ExitStarter, ExitUnknown, B CLOCK_REALTIME ns, C greatest resident size in KiB
//	Empty    A 1 if all that was written is in the log files; no descendant exists
//	Error    A errno, Text act; a start that did not happen, another may follow
//	Stuck    A pid, B errno of kill(2) or 0, C state, Text name; would not die for 5 s, every 10 s
//	Lost     A bytes, B errno, C 1 stdout, 2 stderr; could not be written
//	DeadMan  the timer ran out; Exited and Empty follow, then the guard ends
//	Execed   A exec, B pid; descriptor: the terminal's master, if it has one
//	ExecEnd  A exec, B wait status, C CLOCK_REALTIME ns
//	ExecErr  A exec, B errno, Text act; an exec that did not happen
//	Lingers  A living descendants, B CLOCK_REALTIME ns, C 0 or LeftEnded and a wait status; the main process has
//	         exited with 0 and left them; again when none of them is left. Of what is over before the first of
//	         these, or between the two, the status is that of the first that failed, else of the last; before the
//	         first, one that HUP, INT, KILL, PIPE or TERM has ended, or that says so by 128 and the number, counts
//	         after others
//	Done     A request, B errno or 0. Of Adopt: C start of the process in clock ticks after boot, 0 of one that
//	         has ended. Of Ended: C its wait status. Of ExecKill with ETIMEDOUT: C pid, Text name of a process that
//	         did not die for 5 s
//
// Order of one start: Start, then Error or (Started, Exited, Empty). Order of one exec: Exec, then ExecErr or
// (Execed, ExecEnd). It is accepted while the guard waits and while an app runs, and is killed with all else: at the
// app's end (a start that failed is one), by Kill, with the guard; while one lives whose payload says Awaited, the
// app's end kills nothing. Empty comes after its end. What it leaves behind belongs to the app. There are at most
// MostExecs living ones. Pids are those of the guard's pid namespace.
//
// A start whose payload says Linger may leave a daemon: Start, Started, Lingers, then it is held, though nothing be
// left, and nothing is killed, until one of
//
//	Adopt    The process gets the signals, and its end is that of the start. It is any living descendant that no
//	         living exec has started, or one of the last remembered that were reaped since Started (Exited follows
//	         at once); ESRCH for others. Another may be adopted while it lives. A process that is another's
//	         child until its end is reaped by that one: Lingers follows again, or ExitUnknown while all is being
//	         killed.
//	Finish   Exited with the starter's status 0, Empty.
//	Kill     the same with ExitStarter.
//
// Errno of Adopt and Finish: EBUSY while the main process lives, ECHILD when the start has ended. A starter that ends
// otherwise ends as all do.
type Kind uint32

// The kinds.
const (
	Start    Kind = 1
	Signal   Kind = 2
	Kill     Kind = 3
	Feed     Kind = 4
	Exec     Kind = 5
	ExecSig  Kind = 6
	Adopt    Kind = 7
	Finish   Kind = 8
	Sweep    Kind = 9
	ExecKill Kind = 10
	Ended    Kind = 11

	Hello   Kind = 64
	Started Kind = 65
	Exited  Kind = 66
	Empty   Kind = 67
	Error   Kind = 68
	Stuck   Kind = 69
	Lost    Kind = 70
	DeadMan Kind = 71
	Execed  Kind = 72
	ExecEnd Kind = 73
	ExecErr Kind = 74
	Lingers Kind = 75
	Done    Kind = 76
)

// Bits of Exited's A, beside the 32 of the wait status.
const (
	exitStarter = 32
	exitUnknown = 33

	// ExitStarter: of a starter; what it left is dead or being killed, and no process was adopted.
	ExitStarter int64 = 1 << exitStarter
	// ExitUnknown: of an adopted process; its parent got its status.
	ExitUnknown int64 = 1 << exitUnknown
)

// leftEnded is the bit of Lingers' C, beside the 32 of a wait status, that LeftEnded sets.
const leftEnded = 32

// LeftEnded says in Lingers that something which the starter left is over.
const LeftEnded int64 = 1 << leftEnded

// remembered is how many of the last processes that ended Adopt knows.
const remembered = 64

const (
	textSize = 96
	// mostFDs is the most descriptors of one message.
	mostFDs = 6
)

// MostExecs is how many execs may live at a time.
const MostExecs = 16

// MessageSize is the length of every message in bytes.
const MessageSize = 2*4 + 3*8 + textSize

// Message is one datagram, in the host's byte order. Start is the number of the start it belongs to.
type Message struct {
	Kind    Kind
	Start   uint32
	A, B, C int64
	Text    string
}

// Encode returns the message's bytes; a text that is too long is cut.
func (m Message) Encode() []byte {
	e := binary.NativeEndian
	b := make([]byte, 0, MessageSize)
	b = e.AppendUint32(b, uint32(m.Kind))
	b = e.AppendUint32(b, m.Start)
	b = e.AppendUint64(b, uint64(m.A))
	b = e.AppendUint64(b, uint64(m.B))
	b = e.AppendUint64(b, uint64(m.C))
	b = append(b, m.Text[:min(len(m.Text), textSize-1)]...)
	return b[:MessageSize]
}

// Decode reads one datagram.
func Decode(b []byte) (Message, error) {
	if len(b) != MessageSize {
		return Message{}, fmt.Errorf("guard message: got %d bytes, want %d", len(b), MessageSize)
	}
	e := binary.NativeEndian
	text, _, _ := bytes.Cut(b[32:], []byte{0})
	return Message{
		Kind:  Kind(e.Uint32(b)),
		Start: e.Uint32(b[4:]),
		A:     int64(e.Uint64(b[8:])),
		B:     int64(e.Uint64(b[16:])),
		C:     int64(e.Uint64(b[24:])),
		Text:  string(text),
	}, nil
}
