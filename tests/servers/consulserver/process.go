package consulserver

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is one running server. It dies with the test's process, even with one that is killed.
type process struct {
	pid  int
	gone chan struct{} // closed when it has been reaped
	cmd  *exec.Cmd
}

// launch starts the server with its output appended to the log. The parent-death signal belongs to
// the thread that forks (prctl(2)), so one goroutine keeps its thread until the process has ended.
func launch(cmd *exec.Cmd, logPath string) (*process, error) {
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{cmd: cmd, gone: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait() // how it ended is in its log
		close(p.gone)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// end sends the signal and waits for the end; false when the watchdog barked first.
func (p *process) end(sig syscall.Signal) bool {
	_ = p.cmd.Process.Signal(sig) // an error means it has ended already
	dog := time.NewTimer(watchdog)
	defer dog.Stop()
	select {
	case <-p.gone:
		return true
	case <-dog.C:
		return false
	}
}
