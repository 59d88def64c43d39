package gang

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"
)

// process is one run of the binary. It dies with the test, and with the test's process.
type process struct {
	*child.Process
	t    testing.TB
	name string
	dir  string // of its output: out, err
}

// start runs muster with these arguments. Its environment is env and nothing else.
func start(t testing.TB, name string, env []string, args ...string) *process {
	t.Helper()
	return startBuild(t, muster, name, env, args...)
}

// startBuild is start with another build of muster.
func startBuild(t testing.TB, build, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, dir: t.TempDir()}
	cmd := exec.Command(build, args...)
	cmd.Env = env
	var err error
	if p.Process, err = child.StartApart(cmd, filepath.Join(p.dir, "out"), filepath.Join(p.dir, "err")); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(p.cleanUp)
	return p
}

func (p *process) cleanUp() {
	if !p.ended() {
		_ = p.Signal(syscall.SIGKILL)
		<-p.Gone
	}
	if p.t.Failed() {
		p.t.Logf("%s (pid %d, %s) said:\n%s%s", p.name, p.PID, p.State(), child.Tail(p.err(), 40), child.Tail(p.out(), 20))
	}
}

func (p *process) out() string { return read(filepath.Join(p.dir, "out")) }
func (p *process) err() string { return read(filepath.Join(p.dir, "err")) }

func (p *process) ended() bool { return p.Ended(0) }

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.Signal(sig); err != nil {
		p.t.Fatalf("%s to %s: %v", sig, p.name, err)
	}
}

// again is a signal that may come too late.
func (p *process) again(sig syscall.Signal) {
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
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
	if !p.Ended(limit) {
		p.t.Fatalf("%s (pid %d) has not ended within %s", p.name, p.PID, limit)
	}
	return p.Code()
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

// lives tells whether a process is there and no zombie.
func lives(pid int) bool {
	_, rest, ok := strings.Cut(read(fmt.Sprintf("/proc/%d/stat", pid)), ") ")
	return ok && !strings.HasPrefix(rest, "Z")
}
