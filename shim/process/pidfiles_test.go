package process

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/plan"
)

// TestPIDFilesAreTheInstancesOwn: its process has put there what it likes.
func TestPIDFilesAreTheInstancesOwn(t *testing.T) {
	work := t.TempDir()
	own, run := filepath.Join(work, "a-0"), filepath.Join(work, "a-0/app/run")
	other := filepath.Join(work, "a-1/app/run")
	for _, dir := range []string{run, other} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	theirs := filepath.Join(other, "theirs.pid")
	write(theirs, "17\n")
	write(filepath.Join(run, "good.pid"), " 12\n")
	write(filepath.Join(run, "long.pid"), strings.Repeat("1", 1<<20))
	write(filepath.Join(run, "words.pid"), "not yet")
	if err := errors.Join(os.Symlink("../../../a-1/app/run/theirs.pid", filepath.Join(run, "link.pid")), syscall.Mkfifo(filepath.Join(run, "fifo.pid"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p := New(t.Context(), Config{LogDir: filepath.Join(work, "log"), Log: slog.New(slog.DiscardHandler), Plan: plan.Plan{Process: plan.Process{Folder: own}}})
	script := func(pidFile, dir string) *plan.Script {
		return &plan.Script{Configurations: map[string]map[string]string{"global": {"pid_file": pidFile, "app_pid_dir": dir}}}
	}
	found := make(chan []int)
	look := func(s *plan.Script) []int {
		go func() {
			var pids []int
			for _, found := range p.pidFiles(s, true) {
				pids = append(pids, found.PID)
			}
			found <- pids
		}()
		select {
		case pids := <-found:
			return pids
		case <-time.After(30 * time.Second):
			t.Fatal("the agent waits for what its instance has put into its folder")
			return nil
		}
	}
	if got := look(script(filepath.Join(run, "component.pid"), run)); len(got) != 1 || got[0] != 12 {
		t.Errorf("got %v, want 12 alone", got)
	}
	elsewhere := script(theirs, other)
	if got := look(elsewhere); len(got) != 0 {
		t.Errorf("another instance's: got %v", got)
	}
	p.removePIDs(elsewhere)
	if err := errors.Join(os.RemoveAll(run), os.Symlink("../../a-1/app/run", run)); err != nil {
		t.Fatal(err)
	}
	if got := look(script("", run)); len(got) != 0 {
		t.Errorf("by a link: got %v", got)
	}
	p.removePIDs(script(filepath.Join(run, "theirs.pid"), run))
	if _, err := os.Stat(theirs); err != nil {
		t.Error("another instance's pid file was taken away")
	}
}
