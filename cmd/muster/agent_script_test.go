package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/member"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
)

// TestNotRun: without an interpreter it is the definition's matter, and the words help; a machine that is full is not.
func TestNotRun(t *testing.T) {
	script := &plan.Script{File: "scripts/a.py", Python: "python3"}
	for name, c := range map[string]struct {
		err   error
		class registry.Class
		says  string
	}{
		"no interpreter": {&sandbox.StartError{Act: "exec", Err: syscall.ENOENT}, registry.ClassDefinition, "muster.python"},
		"no program":     {&sandbox.StartError{Act: "exec", Err: syscall.ENOEXEC}, registry.ClassDefinition, "INSTALL"},
		"too many":       {&sandbox.StartError{Act: "fork", Err: syscall.EAGAIN}, registry.ClassData, "INSTALL"},
		"a full disk":    {syscall.ENOSPC, registry.ClassData, "INSTALL"},
	} {
		err := notRun(script, c.err)
		if got := stageClass(err); got != c.class || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got class %s: %v; want %s and %q", name, got, err, c.class, c.says)
		}
	}
}

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
	a := &agent{member: &member.Member{}, workDir: work, logDir: filepath.Join(work, "log"), loop: machine.NewAgent(), log: slog.New(slog.DiscardHandler), plan: plan.Plan{Process: plan.Process{Folder: own}}}
	script := func(pidFile, dir string) *plan.Script {
		return &plan.Script{Configurations: map[string]map[string]string{"global": {"pid_file": pidFile, "app_pid_dir": dir}}}
	}
	found := make(chan []int)
	look := func(s *plan.Script) []int {
		go func() {
			var pids []int
			for _, p := range a.pidFiles(s) {
				pids = append(pids, p.PID)
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
	a.forgetPIDs(elsewhere)
	if err := errors.Join(os.RemoveAll(run), os.Symlink("../../a-1/app/run", run)); err != nil {
		t.Fatal(err)
	}
	if got := look(script("", run)); len(got) != 0 {
		t.Errorf("by a link: got %v", got)
	}
	a.forgetPIDs(script(filepath.Join(run, "theirs.pid"), run))
	if _, err := os.Stat(theirs); err != nil {
		t.Error("another instance's pid file was taken away")
	}
}

// TestOfLife: nobody starts or ends an instance behind the machine's back, in whatever letters.
func TestOfLife(t *testing.T) {
	s := &plan.Script{File: "scripts/a.py", Commands: map[string]plan.ScriptCommand{"restart": {Shell: "true"}, "STOP": {Shell: "true"}}}
	for name, want := range map[string]bool{
		"INSTALL": true, "START": true, "start": true, "Stop": true, "STOP": true, "RESTART": true, "Restart": true,
		"restart": false, "STATUS": false, "GET_CONFIG": false, "REBALANCE": false,
	} {
		if got := ofLife(s, name); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
