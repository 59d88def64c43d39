package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is one muster. It dies with the test, and with the test's process.
type process struct {
	t    testing.TB
	name string
	dir  string // of its output: out, err
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has been reaped
}

// start runs a program with that environment and nothing else, as another user if one is given.
func start(t testing.TB, as *syscall.Credential, env []string, argv ...string) *process {
	t.Helper()
	p := &process{t: t, name: strings.Join(argv[1:], " "), dir: t.TempDir(), gone: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env, p.cmd.Dir = env, "/"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
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
		t.Fatalf("start %q: %v", argv, err)
	}
	t.Cleanup(p.cleanUp)
	return p
}

// cleanUp ends what still runs, so that it takes its processes with it.
func (p *process) cleanUp() {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
		if p.ended(0) {
			break
		}
		_ = p.cmd.Process.Signal(sig)
		p.ended(10 * time.Second)
	}
	if p.t.Failed() {
		p.t.Logf("muster %s (%s) said:\n%s%s", p.name, p.cmd.ProcessState, tail(p.err(), 40), tail(p.out(), 60))
	}
}

func (p *process) out() string { return read(filepath.Join(p.dir, "out")) }
func (p *process) err() string { return read(filepath.Join(p.dir, "err")) }

// ended tells whether it has, within that time.
func (p *process) ended(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.gone:
		return true
	case <-timer.C:
	}
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// wait waits for the end and returns the exit code, as a shell sees it.
func (p *process) wait() int {
	p.t.Helper()
	if !p.ended(watchdog) {
		p.t.Fatalf("muster %s has not ended within %s", p.name, watchdog)
	}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], "")
}
