// Package child starts the programs of tests: servers, agents, runs. A child leads a process group of its own and dies
// with the test's process, even with one that is killed. It owns one goroutine and one thread per child, which end with
// the child.
package child

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is a program that was started.
type Process struct {
	PID  int
	Gone <-chan struct{} // closed when it has been reaped
	cmd  *exec.Cmd
}

// Start starts a program. before is done by the thread that forks. Without a SysProcAttr of its own the program leads a
// process group and dies with this process.
func Start(cmd *exec.Cmd, before ...func() error) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	}
	gone := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		// The parent-death signal belongs to the thread that forks (prctl(2)): it is never unlocked, and lives as long
		// as the child.
		runtime.LockOSThread()
		for _, f := range before {
			if err := f(); err != nil {
				started <- err
				return
			}
		}
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in ProcessState
			close(gone)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return &Process{PID: cmd.Process.Pid, Gone: gone, cmd: cmd}, nil
}

// StartLogged is Start with the output appended to a file.
func StartLogged(cmd *exec.Cmd, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	cmd.Stdout, cmd.Stderr = out, out
	return Start(cmd)
}

// StartApart is Start with stdout and stderr in files of these names.
func StartApart(cmd *exec.Cmd, stdout, stderr string) (*Process, error) {
	out, err := os.Create(stdout)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	said, err := os.Create(stderr)
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = out, said
	return Start(cmd)
}

// Ended tells whether the process has ended, or does within the limit.
func (p *Process) Ended(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.Gone:
		return true
	case <-timer.C:
	}
	select {
	case <-p.Gone:
		return true
	default:
		return false
	}
}

// Signal sends a signal; os.ErrProcessDone when the process has ended.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// End sends the signal and waits until the process is gone; after the limit it is killed, which is an error.
func (p *Process) End(sig syscall.Signal, limit time.Duration) error {
	_ = p.Signal(sig) // it may have ended
	if p.Ended(limit) {
		return nil
	}
	_ = p.Signal(syscall.SIGKILL)
	<-p.Gone
	return fmt.Errorf("%s (pid %d) did not end within %s of %s", p.cmd.Path, p.PID, limit, sig)
}

// Code is the exit code of a process that has ended, as a shell sees it.
func (p *Process) Code() int {
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// State says how the process ended.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Tail is the last lines of a text.
func Tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], "")
}
