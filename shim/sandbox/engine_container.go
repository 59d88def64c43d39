package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// Container is the engine that gives an instance namespaces, a root and a cgroup of its own. The guard is its first
// process. Where no cgroup can limit the memory, a watchdog does, as in the process engine.
type Container struct{ Tree cgroup.Tree }

// Name is the name in the plan.
func (Container) Name() string { return nameContainer }

// errUser says that an ordinary user's container has no other user than that one, as root.
var errUser = errors.New("an ordinary user's container has no other user than its own")

// StartGuard makes the container with a guard in it.
func (e Container) StartGuard(ctx context.Context, o Options) (*Guard, error) {
	if err := e.options(&o); err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	own, restore := openUmask()
	defer restore()
	if o.Umask == nil {
		o.Umask = &own
	}
	var w *containerBoundary
	g, err := startGuard(ctx, o, func(lifeline, socket, exe *os.File) (_ child, _ boundary, err error) {
		if w, err = e.build(ctx, o, lifeline, socket, exe); err != nil {
			return nil, nil, err
		}
		return w.container, w, nil
	})
	if err == nil && w.watch != nil {
		w.watch.bind(g)
	}
	return g, err
}

// options adds to o the bounds of every process in a container: the guard's own privileges are not theirs.
func (e Container) options(o *Options) error {
	if o.Caps == nil {
		o.Caps = new(DefaultCaps)
	}
	o.NoNewPrivs = true
	if u := o.Confine.User; u != nil && os.Geteuid() != 0 {
		if own := uint32(os.Geteuid()); u.UID != 0 && u.UID != own {
			return fmt.Errorf("user %d: %w", u.UID, errUser)
		}
		o.Confine.User = nil // it may change neither user nor groups
	}
	return nil
}

// build makes the container and its cgroup.
func (e Container) build(ctx context.Context, o Options, files ...*os.File) (w *containerBoundary, err error) {
	// The processes of a killed agent would keep the cgroup in use.
	if err := container.Clear(ctx, o.Confine.Dir); err != nil {
		return nil, err
	}
	w, err = e.buildOnce(ctx, o, files)
	// Another instance that removes its cgroup also removes the empty folders above it, which may be ours too.
	for pass := 0; errors.Is(err, fs.ErrNotExist) && pass < rebuilds; pass++ {
		w, err = e.buildOnce(ctx, o, files)
	}
	return w, err
}

// rebuilds is how often the making of a container is retried.
const rebuilds = 3

func (e Container) buildOnce(ctx context.Context, o Options, files []*os.File) (*containerBoundary, error) {
	c := o.Confine
	w, s := &containerBoundary{}, container.Spec{
		App: c.App, Instance: c.Instance, Hostname: c.Hostname, Address: c.Address, Dir: c.Dir,
		Root: c.Root, Mounts: c.Mounts, Shm: c.Shm, Nodes: c.Nodes, Hooks: c.Hooks, IDs: c.IDs,
		// The guard needs the default set, however little its processes get.
		Caps: uint64(DefaultCaps | *o.Caps), AppArmor: c.AppArmor,
	}
	if e.Tree.Usable() {
		limits := c.limits()
		if limits.Devices == nil {
			limits.Devices = []cgroup.Device{} // a container never has more than the standard ones and its nodes
		}
		limits.Everywhere = e.path(c) != ""
		group, err := cgroup.New(ctx, e.Tree, c.App, c.Instance, limits)
		if err != nil {
			return nil, err
		}
		w.group, s.Cgroup = group, e.path(c)
	}
	made, err := container.Run(ctx, s, files...)
	if err != nil {
		return nil, errors.Join(err, w.removeGroup())
	}
	w.container = made
	if e.Tree.Cannot()["memory_mb"] != "" {
		w.watch = watchMemory(made.PID(), c.Limits.Memory)
	}
	if w.group == nil {
		return w, nil
	}
	if s.Cgroup == "" {
		err = w.group.Add(made.PID())
	}
	if err = errors.Join(err, spareGuard(made.PID(), w.group, o.OOMScoreAdj, c.IDs != nil)); err != nil {
		return nil, errors.Join(err, w.giveUp())
	}
	return w, nil
}

// path is where libcontainer finds the cgroup of a container: from the own one of each controller on v1, from the
// mount point on v2. It is "" where libcontainer could not join the cgroup: with v1 it joins all controllers or
// none, with v2 it knows one mount point. Then the guard enters before it starts anything.
func (e Container) path(c Confinement) string {
	const root = "/sys/fs/cgroup"
	if !e.Tree.Usable() {
		return ""
	}
	if e.Tree.Mode == cgroup.V2 {
		if e.Tree.Controllers["memory"].Mount != root {
			return ""
		}
		return strings.TrimPrefix(e.Tree.Path(c.App, c.Instance)[""], root)
	}
	for _, controller := range e.Tree.Controllers {
		if controller.Why != "" {
			return ""
		}
	}
	return "muster/" + c.App + "/" + c.Instance
}

// containerBoundary is a container around a guard, with its cgroup.
type containerBoundary struct {
	noBoundary
	container *container.Container
	group     *cgroup.Group // nil: no cgroup can be made here
	watch     *memoryWatch  // nil: the cgroup holds the limit of memory
}

func (w *containerBoundary) begin() {
	if w.watch != nil {
		w.watch.begin()
		return
	}
	w.group.Begin()
}

func (w *containerBoundary) usage() (cgroup.Usage, error) {
	if w.watch != nil {
		return w.watch.usage()
	}
	return w.group.Usage()
}

// load leaves the memory to who holds the limit.
func (w *containerBoundary) load() (cgroup.Load, error) {
	if w.group == nil {
		return cgroup.Uncounted, nil
	}
	l, err := w.group.Load()
	if w.watch != nil {
		l.Memory = cgroup.Uncounted.Memory
	}
	return l, err
}

func (w *containerBoundary) grow(memory int64) error {
	if w.watch != nil {
		return w.watch.grow(memory)
	}
	return w.group.SetMemory(memory)
}

// kill is left to the guard, the first process of a pid namespace: its kill(-1) misses no process, and it must live.
func (w *containerBoundary) kill() error { return nil }

func (w *containerBoundary) hasOwnPIDs() bool { return true }

func (w *containerBoundary) remove(ctx context.Context) error {
	if w.watch != nil {
		if err := w.watch.remove(ctx); err != nil {
			return err
		}
	}
	if w.group != nil {
		if err := w.group.Remove(ctx); err != nil {
			return err
		}
	}
	return w.container.Remove()
}

// removeGroup removes the cgroup of a container that could not be made.
func (w *containerBoundary) removeGroup() error {
	if w.group == nil {
		return nil
	}
	ctx, cancel := bounded(sweepTime)
	defer cancel()
	return errors.Join(w.group.Remove(ctx), w.group.Close()) // else its locks would refuse the next try
}

// left names the cgroup even where libcontainer has not joined it: the guard entered it by itself.
func (w *containerBoundary) left() Remains {
	cgroups := w.container.Cgroups()
	if w.group != nil {
		cgroups = append(cgroups, w.group.Paths()...)
		slices.Sort(cgroups)
		cgroups = slices.Compact(cgroups)
	}
	return Remains{Cgroups: cgroups, Inodes: cgroup.Inodes(cgroups), Dirs: []string{w.container.Dir()}}
}

// giveUp ends a container that cannot be used.
func (w *containerBoundary) giveUp() error {
	_ = w.container.Kill() // it may have ended
	_, err := w.container.Wait()
	ctx, cancel := bounded(sweepTime)
	defer cancel()
	return errors.Join(err, w.remove(ctx), w.group.Close())
}
