package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// read turns the guard's messages into events until it is gone, then settles what it left.
func (g *Guard) read() {
	buffer, rights := make([]byte, guard.MessageSize), make([]byte, unix.CmsgSpace(4))
	for {
		n, rightsSize, _, _, err := g.conn.ReadMsgUnix(buffer, rights)
		if err != nil || n == 0 {
			break
		}
		file := received(rights[:rightsSize])
		m, err := guard.Decode(buffer[:n])
		if err != nil {
			g.options.Logger.Warn("guard message not understood", "err", err)
			continue
		}
		g.hear(m, file)
	}
	g.settle()
	close(g.inbox)
}

// received is the descriptor that came with a message, for Go's poller; nil when none did.
func received(rights []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil
	}
	_ = unix.SetNonblock(fds[0], true) // of a living descriptor: it is
	return os.NewFile(uintptr(fds[0]), "terminal")
}

func (g *Guard) hear(m guard.Message, file *os.File) {
	attempt := int(m.Start)
	switch m.Kind {
	case guard.Hello:
		g.hello <- m.A
	case guard.Started:
		pid := g.number(int(m.A))
		g.turn(running, pid, nil)
		g.inbox <- Started{Attempt: attempt, PID: pid, Ticks: uint64(m.B)}
	case guard.Error:
		g.turn(idle, 0, &StartError{Act: m.Text, Err: syscall.Errno(m.A)})
	case guard.Lingers:
		g.turn(lingering, 0, nil)
		g.inbox <- Lingers{Attempt: attempt, Left: int(m.A)}
	case guard.Exited:
		g.turn(emptying, 0, nil)
		g.inbox <- Exited{Attempt: attempt, Exit: g.counted(exitTold(m))}
	case guard.Done:
		g.hearDone(m)
	case guard.Empty:
		g.empty()
		g.inbox <- Empty{Attempt: attempt, LogsComplete: m.A == 1}
	case guard.Stuck:
		p := proc.StuckProcess{PID: int(m.A), Name: m.Text, State: byte(m.C)}
		p.PID = g.number(p.PID)
		p.WaitChannel = proc.WaitChannel(p.PID)
		if m.B != 0 {
			p.Err = syscall.Errno(m.B)
		}
		g.noteStuck(p)
		g.inbox <- Stuck{Attempt: attempt, StuckProcess: p}
	case guard.Lost:
		stream := map[int64]string{1: "stdout", 2: "stderr"}[m.C]
		g.inbox <- LogLost{Attempt: attempt, Stream: stream, Bytes: m.A, Err: syscall.Errno(m.B)}
	case guard.DeadMan:
		g.mu.Lock()
		g.fired = true
		g.mu.Unlock()
		g.inbox <- DeadMan{Attempt: attempt}
	case guard.Execed, guard.ExecEnd, guard.ExecErr:
		g.hearExec(m, file)
	case guard.Start, guard.Signal, guard.Kill, guard.Feed, guard.Exec, guard.ExecSig,
		guard.Adopt, guard.Finish, guard.Sweep, guard.ExecKill, guard.Ended:
		g.options.Logger.Warn("guard sent an order", "kind", uint32(m.Kind))
	}
}

// exitTold is the exit that the guard tells.
func exitTold(m guard.Message) Exit {
	x := exitOf(syscall.WaitStatus(uint32(m.A)), time.Unix(0, m.B), m.C<<10)
	switch {
	case m.A&guard.ExitUnknown != 0:
		x = Exit{At: x.At, Message: "ended; status unknown: its parent took it"}
	case m.A&guard.ExitStarter != 0:
		x.Starter = true
		x.Message = "exit code 0 of a starter; what it left has ended unseen"
	}
	return x
}

// number is the agent's own for a process that the guard names; where it has ended meanwhile, the guard's.
func (g *Guard) number(pid int) int {
	if _, apart := g.around.(*walls); !apart {
		return pid
	}
	if own := (proc.Host{}).OuterPID(g.PID(), pid); own != 0 {
		return own
	}
	return pid
}

// counted adds what the boundary saw. The kernel counts a kill before the killed is reaped.
func (g *Guard) counted(x Exit) Exit {
	usage, err := g.around.usage()
	if err != nil {
		g.options.Logger.Warn("read what was used", "err", err)
	}
	x.Usage = usage
	return x
}

// turn moves to the next state and answers the Start under way, if any.
func (g *Guard) turn(to state, pid int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = to
	if pid != 0 {
		g.pid = pid
	}
	if g.reply != nil {
		g.reply <- err
		g.reply = nil
	}
}

// An Empty that answers a Kill of nothing may meet the next Start under way.
func (g *Guard) empty() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == emptying {
		g.state = idle
	}
}

func (g *Guard) noteStuck(p proc.StuckProcess) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// One that runs is slow to die, on a machine that is slow: only what waits in the kernel, or may not be
	// killed, ends the wait for it.
	if !g.closing || p.State != 'D' && p.Err == nil {
		return
	}
	g.left = append(g.left, p)
	if len(g.left) == 1 {
		close(g.stuck)
	}
}

// settle runs when the guard's socket has ended: it waits for the guard, and kills what a violent end left.
func (g *Guard) settle() {
	status, err := g.process.Wait()
	living.remove(g.id())
	g.mu.Lock()
	was, attempt, pid, closing, fired := g.state, g.attempt, g.pid, g.closing, g.fired
	g.state = gone
	g.mu.Unlock()
	defer g.conn.Close()
	defer close(g.ended)
	defer g.endRequests()
	if closing && err == nil && status.Success() {
		g.setLeft(nil)
		g.answerGone(ErrGone)
		g.endSessions(ErrGone)
		return
	}
	exits, left := sweep(proc.Host{})
	g.setLeft(left)
	why := goneError(status, err, fired)
	g.endSessions(why)
	if was == running || was == lingering {
		exit := Exit{At: time.Now(), Message: "ended unseen when its guard was lost", Starter: was == lingering}
		if s, ok := exits[pid]; ok {
			exit = exitOf(s, time.Now(), 0)
		}
		g.inbox <- Exited{Attempt: attempt, Exit: g.counted(exit)}
	}
	if (was == running || was == lingering || was == emptying) && len(left) == 0 {
		g.inbox <- Empty{Attempt: attempt}
	}
	g.answerGone(why)
	g.inbox <- Gone{Err: why, Left: left}
}

func (g *Guard) setLeft(left []proc.StuckProcess) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = left
}

func (g *Guard) answerGone(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reply != nil {
		g.reply <- err
		g.reply = nil
	}
}

func goneError(status *os.ProcessState, err error, fired bool) error {
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrGone, err)
	case fired:
		return fmt.Errorf("%w: %w", ErrGone, ErrDeadMan)
	default:
		return fmt.Errorf("%w: %s", ErrGone, status)
	}
}

// deliver keeps what the reader of Events has not taken yet, so that a slow one never holds up a Start.
func (g *Guard) deliver() {
	defer close(g.events)
	var queue []Event
	inbox := g.inbox
	closed := g.closed
	for inbox != nil || len(queue) > 0 {
		var out chan Event
		var first Event
		if len(queue) > 0 {
			out, first = g.events, queue[0]
		}
		select {
		case e, ok := <-inbox:
			if !ok {
				inbox = nil
				continue
			}
			queue = append(queue, e)
		case out <- first:
			queue = queue[1:]
		case <-closed:
			closed = nil
			if inbox == nil {
				g.offer(queue)
				return
			}
		}
		if inbox == nil && closed == nil {
			g.offer(queue)
			return
		}
	}
}

// offer leaves in the channel what fits; after Close nobody may be reading.
func (g *Guard) offer(queue []Event) {
	for _, e := range queue {
		select {
		case g.events <- e:
		default:
			g.options.Logger.Warn("event not read before close", "event", fmt.Sprintf("%T", e))
			return
		}
	}
}
