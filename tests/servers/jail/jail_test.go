package jail_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/servers/jail"
)

func TestNothingOutlivesAJail(t *testing.T) {
	j := jail.New(t)
	dir := t.TempDir()
	// a session of its own, as a resource manager's container has; who started it does not wait
	out, err := j.Output(exec.Command("sh", "-c", `mount -t tmpfs none "$0" && echo mine >"$0/x"; setsid sleep 1000 >/dev/null 2>&1 & cat "$0/x"`, dir))
	if err != nil || out != "mine\n" {
		t.Fatalf("got %q, %v, want what is mounted", out, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the jail's mount is seen outside: %v", err)
	}
	pids := j.Processes()
	if len(pids) != 1 {
		t.Errorf("got %d processes, want the one that sleeps", len(pids))
	}
	j.Kill()
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("pid %d after the end: got %v, want %v", pid, err, syscall.ESRCH)
		}
	}
}

func TestOutputAndErrors(t *testing.T) {
	j := jail.New(t)
	if out, err := j.Output(exec.Command("sh", "-c", "readlink /proc/1/exe; echo no >&2")); err != nil || !strings.Contains(out, "bash") {
		t.Errorf("got %q, %v, want the jail's own first process", out, err)
	}
	if _, err := j.Output(exec.Command("sh", "-c", "echo no >&2; exit 3")); err == nil || !strings.Contains(err.Error(), "no\n") {
		t.Errorf("got %v, want what it said", err)
	}
}
