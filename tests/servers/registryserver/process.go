package registryserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// process is one running registry. It dies with the test's process, even with one that is killed.
type process struct {
	gone chan struct{} // closed when it has been reaped
	cmd  *exec.Cmd
}

// launch starts the registry with its output appended to the log. The parent-death signal belongs to
// the thread that forks (prctl(2)), so one goroutine keeps its thread until the process has ended.
func launch(binary string, args []string, logPath string) (*process, error) {
	out, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
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
	return p, <-started
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

// Ports come from 12000 to 19999: below what Linux hands to outgoing connections by default, so that
// nobody takes them while the server is stopped, and outside muster's own range of 20000 to 29999.
const lowPort, highPort = 12000, 19999

// holdPort claims a port until the test ends. A claim is an abstract unix socket, a lock that all
// test processes of this network namespace see and that goes with its holder.
func holdPort(t testing.TB) int {
	t.Helper()
	for range 10_000 {
		port := lowPort + rand.IntN(highPort-lowPort+1)
		lock, err := net.Listen("unix", fmt.Sprintf("@muster-test/port/%d", port))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			lock.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { lock.Close() })
		return port
	}
	t.Fatalf("no free port from %d to %d on 127.0.0.1", lowPort, highPort)
	return 0
}
