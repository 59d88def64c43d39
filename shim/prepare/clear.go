package prepare

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
)

// clearPatience is the limit for clearing the remains of dead agents. What does not end in that time is logged, and
// left to the next agent.
const clearPatience = 10 * time.Second

// ClearDead removes the cgroups and containers of killed agents of this host. Their guards have killed the processes in
// them. Living agents are not touched: a process number counts only with its start time, boot and pid namespace.
// Records of other users are ignored.
func ClearDead(ctx context.Context, state status.Dir, self proc.Facts, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, clearPatience)
	defer cancel()
	for _, path := range instanceFiles(state) {
		if ownfolder.Own(string(state), path) != nil {
			continue // root would kill and remove at a stranger's word
		}
		var f status.InstanceFile
		if err := status.ReadJSON(path, &f); err != nil || len(f.Cgroups)+len(f.Dirs) == 0 {
			continue // of another version, or incomplete
		}
		live, err := proc.Host{}.AliveHere(proc.Facts{
			Boot: f.BootID, PidNS: f.PidNS, PID: f.Pid, Start: f.StartTicks,
		})
		if err != nil || live != proc.Dead {
			continue
		}
		remains := sandbox.Remains{Cgroups: f.Cgroups, Inodes: f.Inodes, Dirs: f.Dirs}
		if f.BootID != self.Boot {
			remains.Cgroups = nil // they ended with that boot; a folder of the same name is another's
		}
		if err := errors.Join(killGuard(ctx, f, nil, log), sandbox.Clear(ctx, remains)); err != nil {
			log.Warn("leftovers of a killed agent not cleared", "file", path, "err", err)
			continue
		}
		log.Info("cleared what a killed agent left", "file", path)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("record of a killed agent not removed", "err", err)
		}
	}
}

// instanceFiles are the agents' records of what must be cleared on this host.
func instanceFiles(state status.Dir) []string {
	all, err := fs.Glob(os.DirFS(string(state)), "apps/*/*.json")
	if err != nil {
		return nil // only for a bad pattern
	}
	var instances []string
	for _, name := range all {
		if _, err := registry.ParseInstance(strings.TrimSuffix(filepath.Base(name), ".json")); err == nil {
			instances = append(instances, filepath.Join(string(state), name))
		}
	}
	return instances
}
