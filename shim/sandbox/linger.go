package sandbox

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/guard"
)

// Adopt makes a process the main one of a start that lingers: from now on Signal goes to it, and its end is Exited,
// with its own status; what is left then is killed. pid is its number in the guard's pid namespace, as it wrote it to a
// pid file: in a container not the agent's. It is any living descendant, but for what a living session has started, or
// one of the last 64 processes that ended as orphans since the start, whose status is then reported at once. A process
// whose parent outlives it has no status to report: Lingers follows instead. Another process may be adopted while it
// lives. The error is ErrNotOurs for another process, os.ErrProcessDone when the start has ended, ErrGone after the
// guard's end; Adopt is refused while the starter lives. After an error nothing has changed.
func (g *Guard) Adopt(pid int) error {
	err := g.askHeld(guard.Message{Kind: guard.Adopt, B: int64(pid)}, g.adopted(pid))
	if err != nil {
		return fmt.Errorf("adopt process %d: %w", pid, err)
	}
	return nil
}

// Finish lets a start that lingers end as all do: Exited with the starter's code 0, what it left is killed, Empty. The
// errors are those of Adopt; Finish is refused when a process has been adopted.
func (g *Guard) Finish() error {
	if err := g.askHeld(guard.Message{Kind: guard.Finish}, nil); err != nil {
		return fmt.Errorf("finish start: %w", err)
	}
	return nil
}

// Ended returns how an orphan ended: one of the last 64 that the guard has reaped since the last start, without the
// main process. pid is its number in the guard's pid namespace. Ended may be called after that start, until the next
// one. The error is ErrNotOurs for another process, ErrGone after the guard's end.
func (g *Guard) Ended(ctx context.Context, pid int) (Exit, error) {
	_, start, _ := g.starts.current()
	m, err := g.link.askUntil(ctx, guard.Message{Kind: guard.Ended, Start: uint32(start), B: int64(pid)})
	if err == nil {
		err = heldError(m)
	}
	if err != nil {
		return Exit{}, fmt.Errorf("end of process %d: %w", pid, err)
	}
	return exitOf(syscall.WaitStatus(uint32(m.C)), time.Now(), 0), nil
}

// Sweep kills every descendant of the guard, also what sessions have left, and returns when none is left. It is refused
// while a start is under way. When ctx ends first the error is its cause; the guard continues, and Stuck names what
// does not die.
func (g *Guard) Sweep(ctx context.Context) error {
	m, err := g.link.askUntil(ctx, guard.Message{Kind: guard.Sweep})
	if err == nil {
		err = heldError(m)
	}
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

// askHeld asks something of a start that lingers.
func (g *Guard) askHeld(m guard.Message, first func(guard.Message)) error {
	_, attempt, _ := g.starts.current()
	m.Start = uint32(attempt)
	answer, err := g.link.ask(m, first)
	if err != nil {
		return err
	}
	return heldError(answer)
}

func heldError(m guard.Message) error {
	switch m.B {
	case 0:
		return nil
	case int64(syscall.ESRCH):
		return ErrNotOurs
	case int64(syscall.EBUSY), int64(syscall.EAGAIN):
		return errBusy
	case int64(syscall.ECHILD):
		return os.ErrProcessDone
	default:
		return syscall.Errno(m.B)
	}
}

// adopted handles the answer before any later message of the guard is read, so that none meets the old state.
func (g *Guard) adopted(pid int) func(guard.Message) {
	return func(m guard.Message) {
		if m.B != 0 || m.C == 0 {
			return
		}
		own := g.agentPID(pid)
		g.starts.turn(running, own, nil)
		g.events.in <- Adopted{Attempt: int(m.Start), PID: own, Ticks: uint64(m.C)}
	}
}
