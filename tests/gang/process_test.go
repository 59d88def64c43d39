package gang

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is one run of the binary. It dies with the test, and with the test's process.
type process struct {
	t    testing.TB
	name string
	pid  int
	dir  string // of its output: out, err
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has been reaped
}

// start runs muster with these arguments. Its environment is env and nothing else.
func start(t testing.TB, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, dir: t.TempDir(), gone: make(chan struct{})}
	p.cmd = exec.Command(muster, args...)
	p.cmd.Env = env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := os.Create(filepath.Join(p.dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	said, err := os.Create(filepath.Join(p.dir, "err"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, said
	started := make(chan error, 1)
	go func() {
		// The parent-death signal belongs to the thread that forks (prctl(2)): it lives as long as the child.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in ProcessState
			close(p.gone)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	p.pid = p.cmd.Process.Pid
	t.Cleanup(p.cleanUp)
	return p
}

func (p *process) cleanUp() {
	if !p.ended() {
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
	if p.t.Failed() {
		p.t.Logf("%s (pid %d, %s) said:\n%s%s", p.name, p.pid, p.cmd.ProcessState, tail(p.err(), 40), tail(p.out(), 20))
	}
}

func (p *process) out() string { return read(filepath.Join(p.dir, "out")) }
func (p *process) err() string { return read(filepath.Join(p.dir, "err")) }

func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("%s to %s: %v", sig, p.name, err)
	}
}

// again is a signal that may come too late.
func (p *process) again(sig syscall.Signal) {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%s to %s: %v", sig, p.name, err)
	}
}

// kill ends it by SIGKILL and waits until it is reaped.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.wait()
}

// wait waits for the end and returns the exit code, as a shell sees it.
func (p *process) wait() int {
	p.t.Helper()
	return p.waitFor(watchdog)
}

func (p *process) waitFor(limit time.Duration) int {
	p.t.Helper()
	dog := time.NewTimer(limit)
	defer dog.Stop()
	select {
	case <-p.gone:
	case <-dog.C:
		p.t.Fatalf("%s (pid %d) has not ended within %s", p.name, p.pid, limit)
	}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until its standard error holds the text.
func (p *process) says(text string) {
	p.t.Helper()
	await(p.t, fmt.Sprintf("%q from %s", text, p.name), func() bool { return strings.Contains(p.err(), text) })
}

// read is a file's text, empty while it is not there.
func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], "")
}

// lives tells whether a process is there and no zombie.
func lives(pid int) bool {
	_, rest, ok := strings.Cut(read(fmt.Sprintf("/proc/%d/stat", pid)), ") ")
	return ok && !strings.HasPrefix(rest, "Z")
}
