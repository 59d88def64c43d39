package sandbox

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// Cgroup is the engine that holds an instance in a cgroup and leaves all else as the launcher made it.
type Cgroup struct{ Tree cgroup.Tree }

// Name is the name in the plan.
func (Cgroup) Name() string { return "cgroup" }

// StartGuard makes the cgroup and starts a guard in it, so that whatever the guard starts is inside from the first
// instruction. The guard is spared when the kernel kills for memory; where the agent may not arrange that, the guard
// stays outside and each process enters by itself.
func (e Cgroup) StartGuard(ctx context.Context, o Options) (*Guard, error) {
	return startGuard(ctx, o, func(lifeline, socket, exe *os.File) (child, boundary, error) {
		group, err := cgroup.New(ctx, e.Tree, o.Confine.App, o.Confine.Instance, o.Confine.limits())
		if err != nil {
			return nil, nil, err
		}
		f := &cgroupBoundary{group: group, ids: o.Confine.IDs}
		guard, err := f.start(e.Tree, o.OOMScoreAdj, lifeline, socket, exe)
		if err != nil {
			return nil, nil, errors.Join(err, f.giveUp(guard))
		}
		return direct{guard}, f, nil
	})
}

// cgroupBoundary is a cgroup around the processes of a guard.
type cgroupBoundary struct {
	noBoundary
	group *cgroup.Group
	ids   *subids.Map // of the guard's user namespace; nil: it is in the agent's
	guard int         // the guard's pid, when it is inside; 0: it is not
	entry *os.File    // cgroup.procs, when the guard is outside
}

// start starts the guard inside or outside of the group. The guard is returned with an error too, if it runs.
func (f *cgroupBoundary) start(tree cgroup.Tree, score int, lifeline, socket, exe *os.File) (*os.Process, error) {
	if !tree.Protects {
		entry, err := f.group.Procs()
		if err != nil {
			return nil, err
		}
		if entry != nil { // v2; on v1 there would be one for each controller
			f.entry = entry
			return execGuard(f.ids, lifeline, socket, exe)
		}
	}
	guard, err := f.startInside(lifeline, socket, exe)
	if err != nil {
		return guard, err
	}
	f.guard = guard.Pid
	return guard, spareGuard(guard.Pid, f.group, score, f.ids != nil)
}

// startInside has the guard born in the group; where the kernel or a filter does not know how, and on v1, it is moved
// before it gets its first message.
func (f *cgroupBoundary) startInside(lifeline, socket, exe *os.File) (*os.Process, error) {
	if folder := f.group.Folder(); folder != nil {
		guard, err := execGuardIn(folder, f.ids, lifeline, socket, exe)
		if err == nil || !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.E2BIG) {
			return guard, err
		}
	}
	guard, err := execGuard(f.ids, lifeline, socket, exe)
	if err != nil {
		return nil, err
	}
	return guard, f.group.Add(guard.Pid)
}

// spareGuard keeps the guard of a group from being killed for memory: alone, or with its cgroup (memory.oom.group). Its
// children inherit that, so the guard sets theirs. Where the agent may not do that, the kernel kills one process alone:
// beside those of the job the guard is not large enough to be chosen.
//
// A process may lower its score again to the lowest one that a capable process has set (proc_pid_oom_score_adj(5)).
// Where the guard cannot set its children's, in a user namespace, that must be theirs and not the guard's: the older
// file, whose least value spares too, leaves it as it is.
func spareGuard(guard int, group *cgroup.Group, childrens int, mapped bool) error {
	at := "/proc/" + strconv.Itoa(guard)
	var err error
	if mapped {
		err = cmp.Or(
			os.WriteFile(at+"/oom_score_adj", []byte(strconv.Itoa(childrens)), 0),
			os.WriteFile(at+"/oom_adj", []byte("-17"), 0),
		)
	} else {
		err = os.WriteFile(at+"/oom_score_adj", []byte("-1000"), 0)
	}
	if err != nil {
		return group.KillOne()
	}
	return nil
}

// giveUp removes a boundary whose guard could not be started.
func (f *cgroupBoundary) giveUp(guard *os.Process) error {
	var errs []error
	if guard != nil {
		errs = append(errs, guard.Kill())
		_, err := guard.Wait()
		errs = append(errs, err)
	}
	ctx, cancel := bounded(sweepTime)
	defer cancel()
	return errors.Join(append(errs, f.remove(ctx))...)
}

func (f *cgroupBoundary) begin() { f.group.Begin() }

func (f *cgroupBoundary) usage() (cgroup.Usage, error) {
	return f.group.Usage()
}

func (f *cgroupBoundary) load() (cgroup.Load, error) { return f.group.Load() }

func (f *cgroupBoundary) grow(memory int64) error { return f.group.SetMemory(memory) }

// killTime is how long a kill waits for its proof. The guard names the processes that need longer.
const killTime = 2 * time.Second

func (f *cgroupBoundary) kill() error {
	ctx, cancel := bounded(killTime)
	defer cancel()
	err := f.group.Kill(ctx, f.guard)
	if _, ok := errors.AsType[*proc.StuckError](err); ok {
		return nil
	}
	return err
}

func (f *cgroupBoundary) remove(ctx context.Context) error {
	if f.entry != nil {
		_ = f.entry.Close() // nothing was written through it
	}
	return f.group.Remove(ctx)
}

func (f *cgroupBoundary) left() Remains {
	paths := f.group.Paths()
	return Remains{Cgroups: paths, Inodes: cgroup.Inodes(paths)}
}

func (f *cgroupBoundary) procs() *os.File { return f.entry }
