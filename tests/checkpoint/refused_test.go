package checkpoint_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// screen is what a command says, while it says it.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A store without room takes no checkpoint: the terminal, status and events.jsonl say so with the path and what to do, once, and
// that it is over once there is room.
func TestStoreThatTakesNothing(t *testing.T) {
	need.Root(t)
	l := &lab{t: t, app: "full", top: folder.Temp(t, "mc-")}
	l.store = filepath.Join(l.top, "store")
	l.must(os.MkdirAll(l.store, 0o755))
	l.takesOrders()
	l.must(unix.Mount("tmpfs", l.store, "tmpfs", 0, "size=128k"))
	t.Cleanup(func() { l.must(unix.Unmount(l.store, unix.MNT_DETACH)) })
	l.layOut(settings{
		"muster.framework": "none", "muster.checkpoint.pattern": "ckpt-*", "muster.checkpoint.sync": l.store, "muster.env.HOST": "h0",
		"muster.command": "exec bash app/definition/package/files/worker.sh", "muster.env.CONTROL": l.control(""),
	})
	state := filepath.Join(l.top, "s")
	var said screen
	run := exec.Command(muster, "run", filepath.Join(l.top, "app"), "--app-id", l.app, "--instances", "worker=1", "--engine", "process", "--work-dir", l.work(0), "--state-dir", state) //nolint:noctx // waited for below
	run.Stderr, run.SysProcAttr = &said, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	run.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.top, "LANG=C", l.operator()}
	l.must(run.Start())
	t.Cleanup(func() {
		if run.ProcessState == nil {
			_ = run.Process.Kill()
			_ = run.Wait()
		}
		if t.Failed() {
			t.Log(said.String())
		}
	})
	l.says(0, 0, "stdout.log", "host h0 generation 1 from \n")
	filler := filepath.Join(l.store, "filler")
	fill := func() {
		t.Helper()
		f, err := os.Create(filler)
		l.must(err)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		l.must(f.Close())
	}
	fill()

	warnings := func() []string {
		out, err := exec.Command(muster, "status", l.app, "--state-dir", state, "--json").Output() //nolint:noctx // it ends by itself
		l.must(err)
		var view struct {
			Instances []struct{ Warnings []struct{ Kind, Text string } }
		}
		l.must(json.Unmarshal(out, &view))
		var all []string
		for _, w := range view.Instances[0].Warnings {
			all = append(all, w.Kind+": "+w.Text)
		}
		return all
	}
	l.order(0, 10)
	l.await("the warning on the terminal", func() bool { return strings.Contains(said.String(), "| muster: warning: ") })
	l.await("another try", func() bool {
		return strings.Count(l.read(l.log(0, 0, "agent.log")), `msg="checkpoint upload failed" step=10 `) > 1
	})
	got := warnings()
	if len(got) != 1 || !strings.HasPrefix(got[0], "checkpoints: checkpoint of step 10 is not stored in "+l.store+": ") || !strings.Contains(got[0], "free some") {
		t.Errorf("status warns %q, want where, and what to do", got)
	}
	text, err := exec.Command(muster, "status", l.app, "--state-dir", state).Output() //nolint:noctx // it ends by itself
	l.must(err)
	if !strings.Contains(string(text), "warning     worker-0: checkpoint of step 10 is not stored in "+l.store) {
		t.Errorf("status does not warn:\n%s", text)
	}
	if n := strings.Count(said.String(), "muster: warning: "); n != 1 {
		t.Errorf("the terminal was warned %d times, want once", n)
	}

	l.must(os.Remove(filler))
	l.await("the end of it on the terminal", func() bool {
		return strings.Contains(said.String(), "| muster: checkpoints are stored again, step 10 in "+l.store)
	})
	if got := warnings(); len(got) != 0 {
		t.Errorf("status still warns %q", got)
	}
	if events := l.read(l.log(0, 0, "events.jsonl")); !strings.Contains(events, `"event":"warning"`) || !strings.Contains(events, `"event":"mended"`) {
		t.Errorf("events.jsonl lacks it: %s", events)
	}

	// The end of the process waits for no copy that only a person can make room for; that it is missing is told to the last.
	fill()
	l.order(0, 20)
	l.await("the second warning", func() bool { return len(warnings()) == 1 })
	l.must(os.WriteFile(l.control("end"), nil, 0o600))
	if code := l.ends(run); code != 0 {
		t.Errorf("muster run ended with %d:\n%s", code, said.String())
	}
	if log := l.read(l.log(0, 0, "agent.log")); !strings.Contains(log, `msg="last checkpoint not uploaded"`) {
		t.Error("agent.log does not say that the last checkpoint was not uploaded")
	}
	if got := warnings(); len(got) != 1 || !strings.Contains(got[0], "step 20") {
		t.Errorf("after the end status warns %q", got)
	}
}
