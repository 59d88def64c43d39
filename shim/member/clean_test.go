package member

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// What trains on without its agent and its guard is found by the folder that the record names, and by an agent that
// claims any index.
func TestCleanFindsWhatLeftTheTree(t *testing.T) {
	own, err := proc.SelfFacts()
	if err != nil {
		t.Fatal(err)
	}
	in := registry.Instance{Component: "worker", Index: 1}
	for name, tt := range map[string]struct {
		app, instance, folder string
		recorded              string // work folder; "": by an agent that did not write it
		ends                  bool
	}{
		"another container's folder": {"clean-1", "worker-1", "/scratch/7/worker-1", "/scratch/7/worker-1", true},
		"this agent's folder":        {"clean-1", "worker-1", "/work/worker-1", "", true},
		"another index":              {"clean-1", "worker-2", "/scratch/7/worker-1", "/scratch/7/worker-1", false},
		"another app":                {"clean-2", "worker-1", "/scratch/7/worker-1", "/scratch/7/worker-1", false},
		"a gang of the same name":    {"clean-1", "worker-1", "/home/else/worker-1", "/scratch/7/worker-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			left := exec.CommandContext(t.Context(), "sleep", "600")
			left.Env = []string{"MUSTER_APP_ID=" + tt.app, "MUSTER_INSTANCE=" + tt.instance, "MUSTER_WORK_DIR=" + tt.folder, "PATH=" + os.Getenv("PATH")}
			if err := left.Start(); err != nil {
				t.Fatal(err)
			}
			started, err := proc.Host{}.Stat(left.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				_ = left.Wait() // killed, in any case
				close(ended)
			}()
			defer func() {
				_ = left.Process.Kill()
				<-ended
			}()
			m := New(t.Context(), Config{
				AppID: "clean-1", WorkDir: "/work", Log: slog.New(slog.DiscardHandler), Hooks: Hooks{ClearDead: func(context.Context) {}},
			})
			if err := m.clean(t.Context(), in, registry.Member{Process: registry.Process{Boot: own.Boot, PidNS: own.PidNS}, Folders: registry.Folders{WorkDir: tt.recorded}}); err != nil {
				t.Fatal(err)
			}
			live, err := proc.Host{}.Alive(proc.Facts{Machine: own.Machine, Boot: own.Boot, PidNS: own.PidNS, PID: left.Process.Pid, Start: started.Start})
			if err != nil || (live == proc.Dead) != tt.ends {
				t.Errorf("it is %s, %v; want its end: %v", live, err, tt.ends)
			}
		})
	}
}
