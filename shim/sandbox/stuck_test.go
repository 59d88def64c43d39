package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/tests/need"
)

// A frozen process (freezer, cgroup v1) does not die of SIGKILL: the nearest thing to a device that hangs.
func TestWhatWillNotDieIsNamed(t *testing.T) {
	need.Root(t)
	group := fmt.Sprintf("/sys/fs/cgroup/freezer/muster-test-%d", os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("no freezer of cgroup v1 here; v2's lets SIGKILL through")
	}
	t.Cleanup(func() {
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	})
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	g := processGuardOpen(t, Options{})
	pid := start(t, g, Spec{Attempt: 2, Argv: []string{"sleep", "1000"}})
	write("cgroup.procs", strconv.Itoa(pid))
	write("freezer.state", "FROZEN")
	thawed := false
	thaw := func() {
		if !thawed {
			write("freezer.state", "THAWED")
			thawed = true
		}
	}
	t.Cleanup(thaw)
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if s := await[Stuck](t, g); s.PID != pid || s.Name != "sleep" || s.State != 'D' || s.Err != nil || s.Attempt != 2 {
		t.Errorf("stuck %+v, want %d sleep in D", s, pid)
	}
	err := g.Close()
	if e, ok := errors.AsType[*proc.StuckError](err); !ok || len(e.Processes) != 1 || e.Processes[0].PID != pid {
		t.Errorf("close: %v, want the stuck one named", err)
	}
	// The guard has gone on trying.
	thaw()
	await[Exited](t, g)
	await[Empty](t, g)
	awaitEnd(t, g.PID())
}

// stoppedGuard is a guard whose process has stopped it, and the processes that live on.
func stoppedGuard(t *testing.T) (*Guard, *held) {
	t.Helper()
	g := processGuard(t, Options{})
	fifo := filepath.Join(fifoOnly(t), "alive")
	held := openFifo(t, fifo)
	start(t, g, Spec{Argv: []string{self(t), "as-rebel", fifo, "3"}})
	held.wantReady(t)
	if err := syscall.Kill(g.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return g, held
}

func TestCloseOfAStoppedGuard(t *testing.T) {
	g, held := stoppedGuard(t)
	g.ending.patience = time.Millisecond
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	held.wantEnd(t)
}
