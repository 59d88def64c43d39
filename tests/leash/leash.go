// Package leash bounds what tests run. A program leads a process group of its own, which ends as a whole: with the
// program, when the test ends, and when it takes too long. Killing the program alone would leave those that it has
// started, and who waits for it would wait for the last of them that holds its output.
package leash

import (
	"errors"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is from the SIGTERM that asks a group to end to the SIGKILL that ends it.
const grace = 5 * time.Second

// Program is one that runs on a leash.
type Program struct {
	*exec.Cmd

	over chan struct{} // closed by Wait
}

// Run starts a program, made by exec.CommandContext, and waits for its end, at most for limit.
func Run(cmd *exec.Cmd, limit time.Duration) error {
	p, err := Start(cmd, limit)
	if err != nil {
		return err
	}
	return p.Wait()
}

// Start is the first half of Run. Each Program is waited for once, by its own Wait.
func Start(cmd *exec.Cmd, limit time.Duration) (*Program, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 2 * grace // from the program's end as well, for what writes into its output and has left the group
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Program{Cmd: cmd, over: make(chan struct{})}
	go p.bound(limit)
	return p, nil
}

// Wait waits for the program's end and ends whom it leaves in its group.
func (p *Program) Wait() error {
	defer close(p.over)
	if p.ended() == nil {
		_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL) // it is not reaped: the group's number is nobody else's
	}
	return p.Cmd.Wait()
}

// ended waits for the program's end and does not reap it.
func (p *Program) ended() error {
	for {
		err := unix.Waitid(unix.P_PID, p.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// bound ends the group when the limit is reached before the end.
func (p *Program) bound(limit time.Duration) {
	for _, step := range []struct {
		after  time.Duration
		signal syscall.Signal
	}{{limit, syscall.SIGTERM}, {grace, syscall.SIGKILL}} {
		select {
		case <-p.over:
			return
		case <-time.After(step.after):
			_ = syscall.Kill(-p.Process.Pid, step.signal) // all of it may have ended by itself
		}
	}
}
