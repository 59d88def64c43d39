package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// read turns the guard's messages into events until the guard is gone, then deals with what it left.
func (g *Guard) read() {
	for {
		m, file, err := g.link.receive()
		if errors.Is(err, ErrGone) {
			break
		}
		if err != nil {
			g.options.Logger.Warn("guard message not decoded", "err", err)
			continue
		}
		g.handle(m, file)
	}
	g.afterEnd()
	close(g.events.in)
}

func (g *Guard) handle(m guard.Message, file *os.File) {
	attempt := int(m.Start)
	switch m.Kind {
	case guard.Hello:
		g.hello <- m.A
	case guard.Started:
		pid := g.agentPID(int(m.A))
		g.starts.turn(running, pid, nil)
		g.events.in <- Started{Attempt: attempt, PID: pid, Own: int(m.A), Ticks: uint64(m.B)}
	case guard.Error:
		g.starts.turn(idle, 0, &StartError{Act: m.Text, Err: syscall.Errno(m.A)})
	case guard.Lingers:
		g.starts.turn(lingering, 0, nil)
		g.events.in <- lingersIn(m)
	case guard.Exited:
		g.starts.turn(emptying, 0, nil)
		g.events.in <- Exited{Attempt: attempt, Exit: g.withUsage(exitIn(m))}
	case guard.Done:
		g.link.answered(m)
	case guard.Empty:
		g.starts.emptied()
		g.events.in <- Empty{Attempt: attempt, LogsComplete: m.A == 1}
	case guard.Stuck:
		p := proc.StuckProcess{PID: int(m.A), Name: m.Text, State: byte(m.C)}
		p.PID = g.agentPID(p.PID)
		p.WaitChannel = proc.WaitChannel(p.PID)
		if m.B != 0 {
			p.Err = syscall.Errno(m.B)
		}
		g.ending.isStuck(p)
		g.events.in <- Stuck{Attempt: attempt, StuckProcess: p}
	case guard.Lost:
		stream := map[int64]string{1: "stdout", 2: "stderr"}[m.C]
		g.events.in <- LogLost{Attempt: attempt, Stream: stream, Bytes: m.A, Err: syscall.Errno(m.B)}
	case guard.DeadMan:
		g.ending.timerRanOut()
		g.events.in <- DeadMan{Attempt: attempt}
	case guard.Execed, guard.ExecEnd, guard.ExecErr:
		g.handleExec(m, file)
	case guard.Start, guard.Signal, guard.Kill, guard.Feed, guard.Exec, guard.ExecSig,
		guard.Adopt, guard.Finish, guard.Sweep, guard.ExecKill, guard.Ended:
		g.options.Logger.Warn("guard sent a message that only agents send", "kind", uint32(m.Kind))
	}
}

// exitIn is the exit that a message reports.
func exitIn(m guard.Message) Exit {
	x := exitOf(syscall.WaitStatus(uint32(m.A)), time.Unix(0, m.B), m.C<<10)
	switch {
	case m.A&guard.ExitUnknown != 0:
		x = Exit{At: x.At, Message: "ended; status unknown: its parent took it"}
	case m.A&guard.ExitStarter != 0:
		x.Starter = true
		x.Message = "exit code 0 of a starter; what it left was ended"
	}
	return x
}

// lingersIn is what a message says of a starter that has ended.
func lingersIn(m guard.Message) Lingers {
	l := Lingers{Attempt: int(m.Start), Left: int(m.A)}
	if m.C&guard.LeftEnded != 0 {
		x := exitOf(syscall.WaitStatus(uint32(m.C)), time.Unix(0, m.B), 0)
		l.Ended = &x
	}
	return l
}

// agentPID is the agent's own number for a process that the guard names; where it has ended meanwhile, the guard's.
func (g *Guard) agentPID(pid int) int {
	if !g.around.hasOwnPIDs() {
		return pid
	}
	if own := (proc.Host{}).OuterPID(g.PID(), pid); own != 0 {
		return own
	}
	return pid
}

// withUsage adds what the boundary counted. The kernel counts a kill before the process is reaped.
func (g *Guard) withUsage(x Exit) Exit {
	x.Usage = g.Usage()
	return x
}

// Usage is what the boundary has counted since the last start; before the first one, since the guard was started.
func (g *Guard) Usage() cgroup.Usage {
	usage, err := g.around.usage()
	if err != nil {
		g.options.Logger.Warn("usage not read", "err", err)
	}
	return usage
}

// Load is what the processes hold and have used now. What the boundary does not count is read from /proc.
func (g *Guard) Load() (cgroup.Load, error) {
	l, err := g.around.load()
	if s, gone := (proc.Host{}).Stat(g.PID()); gone != nil || s.ID() != g.id { // else another process has the number
		return cgroup.Uncounted, ErrGone
	}
	if err == nil && l.Memory < 0 {
		l.Memory, err = proc.Host{}.Memory(g.PID())
	}
	if err == nil && l.CPU < 0 {
		l.CPU, err = proc.Host{}.CPU(g.PID())
	}
	return l, err
}

// afterEnd runs when the guard's socket has ended: it waits for the guard, and kills what a violent end left.
func (g *Guard) afterEnd() {
	status, err := g.process.Wait()
	liveGuards.remove(g.id)
	was, attempt, pid := g.starts.lose()
	closed, timer := g.ending.why()
	defer close(g.ending.ended)
	defer g.link.end()
	if closed && err == nil && status.Success() {
		g.ending.leaves(nil)
		g.starts.lost(ErrGone)
		g.sessions.lose(ErrGone)
		return
	}
	exits, left := sweep(proc.Host{})
	g.ending.leaves(left)
	why := goneError(status, err, timer, left)
	g.sessions.lose(why)
	if was.hasMain() {
		exit := Exit{At: time.Now(), Message: "ended unseen when its guard was lost", Starter: was == lingering}
		if s, ok := exits[pid]; ok {
			exit = exitOf(s, time.Now(), 0)
		}
		g.events.in <- Exited{Attempt: attempt, Exit: g.withUsage(exit)}
	}
	if (was.hasMain() || was == emptying) && len(left) == 0 {
		g.events.in <- Empty{Attempt: attempt}
	}
	g.starts.lost(why)
	g.events.in <- Gone{Err: why, Left: left}
}

func goneError(status *os.ProcessState, err error, timer bool, left []proc.StuckProcess) error {
	switch {
	case len(left) > 0:
		return fmt.Errorf("%w: %w", goneError(status, err, timer, nil), ErrLeft)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrGone, err)
	case timer:
		return fmt.Errorf("%w: %w", ErrGone, errDeadMan)
	default:
		return fmt.Errorf("%w: %s", ErrGone, status)
	}
}
