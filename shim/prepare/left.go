package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/status"
)

// Left names the instance whose last agent left processes on this host.
type Left struct {
	State    status.Dir
	App      string
	Instance registry.Instance
	Inc      string // incarnation that the registry names as the last holder
	Folder   string // the instance's folder, for records of earlier builds, which do not say it
}

// sealedGuard is how the kernel shows the program of a guard: a sealed file in memory that has no name in any folder.
const sealedGuard = "/memfd:muster-guard (deleted)"

// KillLeft kills what an agent of an instance has left of its processes on this host. It goes by that agent's own
// record below the state folder, never by the registry's: known is false without such a record, and then nothing is
// killed. A record counts if it is of the incarnation that lost the index, or if its agent is dead.
func KillLeft(ctx context.Context, l Left, log *slog.Logger) (known bool, err error) {
	path := filepath.Join(l.State.App(l.App), l.Instance.String()+".json")
	if err := ownfolder.Own(string(l.State), path); err != nil {
		log.Warn("record of the previous agent not used", "file", path, "err", err)
		return false, nil
	}
	var f status.InstanceFile
	err = status.ReadJSON(path, &f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		log.Warn("record of the previous agent not read", "file", path, "err", err)
		return false, nil
	}
	live, err := proc.Host{}.AliveHere(proc.Facts{Boot: f.BootID, PidNS: f.PidNS, PID: f.Pid, Start: f.StartTicks})
	if err != nil || live != proc.Dead && f.Inc != l.Inc {
		return false, err
	}
	folder := f.WorkDir
	if folder == "" {
		folder = l.Folder
	}
	return true, killGuard(ctx, f, map[string]string{ // finds also the processes that left the guard's tree
		"MUSTER_APP_ID": l.App, "MUSTER_INSTANCE": l.Instance.String(), "MUSTER_WORK_DIR": folder,
	}, log)
}

// killGuard kills the guard of an own record with all below it, and the processes with that environment. A process
// that has the guard's number, and is not the guard in each respect, is left alone.
func killGuard(ctx context.Context, f status.InstanceFile, env map[string]string, log *slog.Logger) error {
	left := proc.Leftover{Boot: f.BootID, PidNS: f.PidNS, Env: env}
	if f.Guard != nil {
		facts := proc.Facts{Boot: f.BootID, PidNS: f.PidNS, PID: f.Guard.Pid, Start: f.Guard.Start}
		live, err := proc.Host{}.AliveHere(facts)
		if err != nil {
			return err
		}
		why := notGuard(f)
		switch {
		case live == proc.Dead:
		case live == proc.Alive && why != "":
			log.Warn("process with the number of a recorded guard left alone", "pid", f.Guard.Pid, "why", why)
		default:
			left.Guard = proc.ID{PID: f.Guard.Pid, Start: f.Guard.Start}
		}
	}
	if left.Guard.PID == 0 && len(env) == 0 {
		return nil
	}
	return proc.Host{}.KillOrphans(ctx, left)
}

// SeeGuard is what /proc says of a guard that has just started.
func SeeGuard(pid int) *status.GuardSeen {
	seen := status.GuardSeen{UID: -1}
	dir := "/proc/" + strconv.Itoa(pid)
	seen.Exe, _ = os.Readlink(dir + "/exe") // "": an ordinary user may not
	var is unix.Stat_t
	if unix.Lstat(dir, &is) == nil {
		seen.UID = int(is.Uid)
	}
	text, _ := os.ReadFile(dir + "/cgroup") // "": a kernel without cgroups
	seen.Cgroup = strings.TrimSpace(string(text))
	return &seen
}

// notGuard tells in which respect the process with the guard's number is not the recorded guard; "": in none.
func notGuard(f status.InstanceFile) string {
	now := SeeGuard(f.Guard.Pid)
	want := f.Seen
	if want == nil { // of an earlier build
		want = &status.GuardSeen{Exe: sealedGuard, UID: now.UID, Cgroup: now.Cgroup}
	}
	switch {
	case now.Exe != want.Exe || now.Exe != sealedGuard && now.Exe != "":
		return fmt.Sprintf("its program is %q, not %q", now.Exe, sealedGuard)
	case now.UID != want.UID:
		return fmt.Sprintf("it is of uid %d, not %d", now.UID, want.UID)
	case now.Cgroup != want.Cgroup:
		return fmt.Sprintf("it is in the cgroups %q, not %q", now.Cgroup, want.Cgroup)
	}
	return ""
}
