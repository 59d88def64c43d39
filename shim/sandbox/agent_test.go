package sandbox

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/tests/need"
)

// fakeAgent runs this binary as an agent with the given app and returns it with the pids of guard and app.
func fakeAgent(t *testing.T, dir string, app ...string) (agent *exec.Cmd, guardPID, appPID int) {
	t.Helper()
	return fakeAgentAs(t, "as-agent", append([]string{dir}, app...)...)
}

func fakeAgentAs(t *testing.T, role string, args ...string) (agent *exec.Cmd, guardPID, appPID int) {
	t.Helper()
	if p, err := guard.Open(); err != nil {
		need.Skip(t, err.Error())
	} else {
		p.Close()
	}
	agent = exec.Command(self(t), append([]string{role}, args...)...)
	agent.Stderr = t.Output()
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = agent.Process.Kill(), agent.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(line, &guardPID, &appPID); err != nil {
		t.Fatalf("agent says %q", line)
	}
	return agent, guardPID, appPID
}

func TestAgentKilledLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(fifoOnly(t), "alive")
	held := openFifo(t, fifo)
	agent, guardPID, _ := fakeAgent(t, dir, self(t), "as-rebel", fifo, "5")
	held.wantReady(t)
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	held.wantEnd(t)
	awaitEnd(t, guardPID)
}

func TestAgentKilledLosesNoByte(t *testing.T) {
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	agent, guardPID, appPID := fakeAgent(t, dir, self(t), "as-counter", count)
	waitForLine(t, filepath.Join(dir, "stdout.log"), "100000")
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, guardPID)
	awaitEnd(t, appPID)
	written := binary.NativeEndian.Uint64([]byte(readFile(t, count)))
	log := readFile(t, dir, "stdout.log")
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	// The note follows the write, so one line may be there that is not noted.
	if n := uint64(len(lines)); n != written && n != written+1 {
		t.Errorf("%d lines in the log, %d written", n, written)
	}
	for i, line := range lines {
		if line != fmt.Sprint(i+1) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
}

func TestStoppedAgentStopsNobody(t *testing.T) {
	dir := t.TempDir()
	agent, guardPID, _ := fakeAgent(t, dir, self(t), "as-counter", filepath.Join(dir, "count"))
	if err := agent.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Far more than the pipe holds, while nobody reads events.
	waitForLine(t, filepath.Join(dir, "stdout.log"), "500000")
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, guardPID)
}

func TestAgentAndGuardKilledTogether(t *testing.T) {
	need.Root(t) // reads what survives in /proc whoever inherited it
	dir := t.TempDir()
	fifo := filepath.Join(fifoOnly(t), "alive")
	held := openFifo(t, fifo)
	t.Setenv("MUSTER_APP_ID", filepath.Base(dir))
	t.Setenv("MUSTER_INSTANCE", "worker-3")
	agent, guardPID, appPID := fakeAgent(t, dir, self(t), "as-rebel", fifo, "5")
	t.Setenv("MUSTER_APP_ID", "") // ours, so that only theirs are found
	held.wantReady(t)
	facts, err := proc.SelfFacts()
	if err != nil {
		t.Fatal(err)
	}
	h := proc.Host{}
	app, err := h.Facts(appPID)
	if err != nil {
		t.Fatal(err)
	}
	g, err := h.Facts(guardPID)
	if err != nil {
		t.Fatal(err)
	}
	// Stopped first, so that neither can act on the other's end.
	for _, pid := range []int{guardPID, agent.Process.Pid} {
		if err := errors.Join(syscall.Kill(pid, syscall.SIGSTOP), syscall.Kill(pid, syscall.SIGKILL)); err != nil {
			t.Fatal(err)
		}
	}
	awaitEnd(t, guardPID)
	err = h.KillOrphans(t.Context(), proc.Leftover{
		Boot: facts.Boot, PidNS: facts.PidNS,
		Guard: proc.ID{PID: g.PID, Start: g.Start}, App: proc.ID{PID: app.PID, Start: app.Start},
		Env: map[string]string{"MUSTER_APP_ID": filepath.Base(dir), "MUSTER_INSTANCE": "worker-3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	held.wantEnd(t)
}

func TestGuardAgentDiesWhileParked(t *testing.T) {
	g := processGuard(t, Options{LogDir: filepath.Join(t.TempDir(), "never")})
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(g.options.LogDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a guard that started nothing made %s", g.options.LogDir)
	}
	awaitEnd(t, g.PID())
}
