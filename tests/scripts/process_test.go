package scripts_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/child"
)

// process is one muster. It dies with the test, and with the test's process.
type process struct {
	*child.Process
	t    testing.TB
	name string
	dir  string // of its output: out, err
}

// start runs a program with that environment and nothing else, as another user if one is given.
func start(t testing.TB, as *syscall.Credential, env []string, argv ...string) *process {
	t.Helper()
	p := &process{t: t, name: strings.Join(argv[1:], " "), dir: t.TempDir()}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: as}
	var err error
	if p.Process, err = child.StartApart(cmd, filepath.Join(p.dir, "out"), filepath.Join(p.dir, "err")); err != nil {
		t.Fatalf("start %q: %v", argv, err)
	}
	t.Cleanup(p.cleanUp)
	return p
}

// cleanUp ends what still runs, so that it takes its processes with it.
func (p *process) cleanUp() {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
		if p.Ended(0) {
			break
		}
		_ = p.Signal(sig)
		p.Ended(10 * time.Second)
	}
	if p.t.Failed() {
		p.t.Logf("muster %s (%s) said:\n%s%s", p.name, p.State(), child.Tail(p.err(), 40), child.Tail(p.out(), 60))
	}
}

func (p *process) out() string { return read(filepath.Join(p.dir, "out")) }
func (p *process) err() string { return read(filepath.Join(p.dir, "err")) }

// wait waits for the end and returns the exit code, as a shell sees it.
func (p *process) wait() int {
	p.t.Helper()
	if !p.Ended(watchdog) {
		p.t.Fatalf("muster %s has not ended within %s", p.name, watchdog)
	}
	return p.Code()
}
