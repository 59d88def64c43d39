package gang

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestNobodyReadsTheLog: an agent whose stderr is a full pipe that nobody reads starts its process, restarts it, reports
// its end and leaves, as any other.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	g := newGang(t, place{consul: consulserver.Start(t, consulserver.Options{})}, workers(1, nil))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	size, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(muster, g.argsOf("worker-0")...)
	agent.Env, agent.Stderr = g.environment(), w
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	t.Cleanup(func() { _ = agent.Process.Kill() })

	g.stage.next("worker-0").kill()
	g.stage.next("worker-0").exit(0)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("agent: %v, want success", err)
		}
	case <-time.After(watchdog):
		t.Fatal("the agent does not end")
	}
	g.agentSays("worker-0", "agent ends")
}
