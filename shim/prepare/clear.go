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

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
)

// clearPatience bounds the clearing of what dead agents left: what does not go meanwhile is named, and left to the
// next.
const clearPatience = 10 * time.Second

// ClearDead takes away what agents of this host that were killed have left: their cgroups and containers. The
// processes in them have been killed by their guards. What lives is not touched: a number counts only with its
// start, boot and pid namespace; nor what another user's record names.
func ClearDead(ctx context.Context, state status.Dir, self proc.Facts, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, clearPatience)
	defer cancel()
	for _, path := range instanceFiles(state) {
		if !ownFile(path) {
			continue // it would have root kill and remove what a stranger names
		}
		var f status.InstanceFile
		if err := status.ReadJSON(path, &f); err != nil || len(f.Cgroups)+len(f.Dirs) == 0 {
			continue // of another version, or half of a name: nothing is known to be there
		}
		live, err := proc.Host{}.Alive(proc.Facts{
			Machine: self.Machine, Boot: f.BootID, PidNS: f.PidNS, PID: f.Pid,
			Start: f.StartTicks,
		})
		if err != nil || live != proc.Dead {
			continue
		}
		remains := sandbox.Remains{Cgroups: f.Cgroups, Dirs: f.Dirs}
		if f.BootID != self.Boot {
			remains.Cgroups = nil // they went with that boot; a folder of the same name is somebody else's
		}
		if err := sandbox.Clear(ctx, remains); err != nil {
			log.Warn("clear what a killed agent left", "file", path, "err", err)
			continue
		}
		log.Info("cleared what a killed agent left", "file", path)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("forget a killed agent", "err", err)
		}
	}
}

// ownFile tells that a file is of the agent's own user, in a folder that is too: nobody else has put it there.
func ownFile(path string) bool {
	for _, name := range []string{path, filepath.Dir(path)} {
		var is unix.Stat_t
		if unix.Lstat(name, &is) != nil || int(is.Uid) != os.Geteuid() || is.Mode&0o022 != 0 {
			return false
		}
	}
	return true
}

// instanceFiles are the records that agents of this host keep of what must be cleared.
func instanceFiles(state status.Dir) []string {
	all, err := fs.Glob(os.DirFS(string(state)), "apps/*/*.json")
	if err != nil {
		return nil // only of a pattern that is none
	}
	var instances []string
	for _, name := range all {
		if _, err := registry.ParseInstance(strings.TrimSuffix(filepath.Base(name), ".json")); err == nil {
			instances = append(instances, filepath.Join(string(state), name))
		}
	}
	return instances
}
