package prepare

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/need"
)

// sleeper is a process that sleeps until the test ends.
func sleeper(t *testing.T, env ...string) proc.Facts {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sleep", "600")
	c.Env = append(env, "PATH="+os.Getenv("PATH"))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // killed, in any case
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	facts, err := proc.Host{}.Facts(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func lives(t *testing.T, f proc.Facts) bool {
	t.Helper()
	live, err := proc.Host{}.AliveHere(f)
	if err != nil {
		t.Fatal(err)
	}
	return live == proc.Alive
}

// deadAgent is the record of an agent of this boot that has ended.
func deadAgent(t *testing.T) status.InstanceFile {
	t.Helper()
	own, err := proc.SelfFacts()
	if err != nil {
		t.Fatal(err)
	}
	return status.InstanceFile{
		Version: 1, Pid: own.PID, StartTicks: own.Start + 1, BootID: own.Boot, PidNS: own.PidNS, Inc: "dead",
	}
}

var worker = registry.Instance{Component: "worker", Index: 1}

// What trains on without its agent and its guard is found by the folder that the dead agent's own record names, and
// nothing else is.
func TestKillLeftFindsWhatLeftTheTree(t *testing.T) {
	for name, tt := range map[string]struct {
		app, instance, folder string
		recorded              string // work folder; "": by an agent that did not write it
		ends                  bool
	}{
		"another container's folder": {"left-1", "worker-1", "/scratch/7/worker-1", "/scratch/7/worker-1", true},
		"this agent's folder":        {"left-1", "worker-1", "/work/worker-1", "", true},
		"another index":              {"left-1", "worker-2", "/scratch/7/worker-1", "/scratch/7/worker-1", false},
		"another app":                {"left-2", "worker-1", "/scratch/7/worker-1", "/scratch/7/worker-1", false},
		"a gang of the same name":    {"left-1", "worker-1", "/home/else/worker-1", "/scratch/7/worker-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			left := sleeper(t, "MUSTER_APP_ID="+tt.app, "MUSTER_INSTANCE="+tt.instance, "MUSTER_WORK_DIR="+tt.folder)
			l := Left{State: status.Dir(t.TempDir()), App: "left-1", Instance: worker, Folder: "/work/worker-1"}
			f := deadAgent(t)
			f.WorkDir = tt.recorded
			if err := status.WriteOwnJSON(filepath.Join(l.State.App(l.App), "worker-1.json"), f); err != nil {
				t.Fatal(err)
			}
			known, err := KillLeft(t.Context(), l, slog.New(slog.DiscardHandler))
			if err != nil || !known {
				t.Fatalf("known %t, %v", known, err)
			}
			if lives(t, left) == tt.ends {
				t.Errorf("want its end: %v", tt.ends)
			}
		})
	}
}

// TestAttackRecordOfAStranger: nothing is killed at the word of a record that another user has written or may change,
// of a living agent, or whose guard's number belongs to another process.
func TestAttackRecordOfAStranger(t *testing.T) {
	const nobody = 65534
	for name, tt := range map[string]struct {
		root bool
		is   func(f *status.InstanceFile) // what the record says beside the truth
		does func(state status.Dir, path string) error
		says string
	}{
		"the guard's number is another's": {says: `its program is`},
		"a living agent's": {is: func(f *status.InstanceFile) {
			f.StartTicks-- // this process
		}},
		"others may write it": {
			does: func(_ status.Dir, path string) error { return os.Chmod(path, 0o666) }, says: "may be written by others",
		},
		"others may write the state folder": {
			does: func(s status.Dir, _ string) error { return os.Chmod(string(s), 0o777) }, says: "may be written by others",
		},
		"another user's": {
			root: true, does: func(_ status.Dir, path string) error { return os.Chown(path, nobody, nobody) },
			says: "belongs to uid 65534",
		},
		"in another user's folder": {
			root: true, does: func(s status.Dir, _ string) error { return os.Chown(string(s), nobody, nobody) },
			says: "belongs to uid 65534",
		},
		"a link": {
			does: func(s status.Dir, path string) error {
				moved := string(s) + "/moved"
				if err := os.Rename(path, moved); err != nil {
					return err
				}
				return os.Symlink(moved, path)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.root {
				need.Root(t)
			}
			victim := sleeper(t)
			l := Left{State: status.Dir(t.TempDir()), App: "d1", Instance: worker, Inc: "the registry's"}
			f := deadAgent(t)
			f.Guard = &registry.ProcessRef{Pid: victim.PID, Start: victim.Start}
			path := filepath.Join(l.State.App(l.App), "worker-1.json")
			if tt.is != nil {
				tt.is(&f)
			}
			if err := status.WriteOwnJSON(path, f); err != nil {
				t.Fatal(err)
			}
			if tt.does != nil {
				if err := tt.does(l.State, path); err != nil {
					t.Fatal(err)
				}
			}
			var log bytes.Buffer
			if _, err := KillLeft(t.Context(), l, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
				t.Error(err)
			}
			ClearDead(t.Context(), l.State, proc.Facts{}, slog.New(slog.NewTextHandler(&log, nil)))
			if !lives(t, victim) {
				t.Error("the process that the record named was killed")
			}
			if !strings.Contains(log.String(), tt.says) {
				t.Errorf("the operator reads %q, want %q", log.String(), tt.says)
			}
		})
	}
}

// The record of an agent is its own user's alone.
func TestRecordsAreTheAgentsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "apps", "d1", "worker-0.json")
	if err := status.WriteOwnJSON(path, deadAgent(t)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if is, err := os.Lstat(name); err != nil || is.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, is.Mode(), err, want)
		}
	}
}
