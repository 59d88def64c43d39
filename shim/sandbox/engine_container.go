package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// Container is the engine that gives an instance namespaces, a root and a cgroup of its own. The guard is its first
// process. Where no cgroup can be made memory is watched as in the process engine, and Unenforced names the rest.
type Container struct{ Tree cgroup.Tree }

// Name is the word of the plan.
func (Container) Name() string { return NameContainer }

// ErrUser says that an ordinary user's container has nobody but that user in it, as root.
var ErrUser = errors.New("an ordinary user's container has no other user than its own")

// Park makes the container with a guard in it.
func (e Container) Park(ctx context.Context, o Options) (*Guard, error) {
	if err := e.settle(&o); err != nil {
		return nil, fmt.Errorf("park guard: %w", err)
	}
	var w *walls
	g, err := park(ctx, o, func(lifeline, socket, exe *os.File) (_ child, _ boundary, err error) {
		if w, err = e.build(o.Confine, lifeline, socket, exe); err != nil {
			return nil, nil, err
		}
		return w.container, w, nil
	})
	if err == nil && w.watch != nil {
		w.watch.bind(g)
	}
	return g, err
}

// settle gives o what every process of a container is held to, the guard's own privileges not being theirs.
func (e Container) settle(o *Options) error {
	most := DefaultCaps
	if o.Caps != nil {
		most &= *o.Caps
	}
	o.Caps, o.NoNewPrivs = &most, true
	if u := o.Confine.User; u != nil && os.Geteuid() != 0 {
		if own := uint32(os.Geteuid()); u.UID != 0 && u.UID != own {
			return fmt.Errorf("user %d: %w", u.UID, ErrUser)
		}
		o.Confine.User = nil // it may change neither user nor groups
	}
	return nil
}

func (e Container) build(c Confinement, files ...*os.File) (*walls, error) {
	s := container.Spec{
		App: c.App, Instance: c.Instance, Hostname: c.Hostname, Address: c.Address, Dir: c.Dir,
		Root: c.Root, Mounts: c.Mounts, Shm: c.Shm, Nodes: c.Nodes, Hooks: c.Hooks,
		Cgroup: e.path(c), CountsSwap: e.Tree.Swap, Limits: e.held(c.Limits),
	}
	if s.Cgroup != "" {
		if err := e.Tree.MoveToLeaf(); err != nil {
			return nil, err
		}
	}
	made, err := container.Run(s, files...)
	// Another instance that takes its cgroup away also takes the empty folders above it, perhaps under our hands.
	for pass := 0; errors.Is(err, fs.ErrNotExist) && pass < remakes; pass++ {
		made, err = container.Run(s, files...)
	}
	if err != nil {
		return nil, err
	}
	w := &walls{container: made}
	if s.Cgroup == "" {
		w.watch = watchMemory(made.PID(), c.Limits.Memory)
	}
	if s.Cgroup != "" {
		if w.group, err = cgroup.Load(e.Tree, c.App, c.Instance); err != nil {
			return nil, errors.Join(err, w.giveUp())
		}
	}
	return w, nil
}

// remakes is how often a container is tried again.
const remakes = 3

// path is where libcontainer makes the cgroup: from the own one of each controller on v1, from the mount point on
// v2. It is "" when not all of it can be made.
func (e Container) path(c Confinement) string {
	if e.Tree.Mode == cgroup.None || e.noCgroup() != "" {
		return ""
	}
	if e.Tree.Mode != cgroup.V2 {
		return "muster/" + c.App + "/" + c.Instance
	}
	return strings.TrimPrefix(e.Tree.Path(c.App, c.Instance)[""], "/sys/fs/cgroup")
}

// noCgroup is why libcontainer cannot make a cgroup here; "" when it can. With v1 it joins all controllers or none.
func (e Container) noCgroup() string {
	memory, known := e.Tree.Controllers["memory"]
	switch {
	case !known:
		return "no cgroup file system is mounted"
	case e.Tree.Mode == cgroup.V2 && memory.Mount != "/sys/fs/cgroup" && memory.Why == "":
		return "cgroups are mounted at " + memory.Mount + " and not at /sys/fs/cgroup"
	case e.Tree.Mode == cgroup.V2:
		return memory.Why
	}
	for name, c := range e.Tree.Controllers {
		if c.Why != "" {
			return name + ": " + c.Why
		}
	}
	return ""
}

// held is l without what the kernel would refuse: it is named by Unenforced.
func (e Container) held(l cgroup.Limits) cgroup.Limits {
	cannot := e.Tree.Cannot(l)
	if cannot["memory_mb"] != "" {
		l.Memory, l.High, l.Swap, l.Group = 0, 0, 0, false
	}
	if cannot["vcores"] != "" {
		l.CPU = 0
	}
	if cannot["pids"] != "" {
		l.Pids = 0
	}
	return l
}

// Unenforced names the limits of l that the container engine does not hold here, and why.
func (e Container) Unenforced(l plan.Limits) []plan.Unenforced {
	asked := groupLimits(l)
	cannot := e.Tree.Cannot(asked)
	if os.Geteuid() != 0 {
		// Its /dev has no other devices, and in a user namespace nobody can make a node.
		delete(cannot, "gpus")
	}
	if why := e.noCgroup(); why != "" {
		for limit, is := range map[string]bool{
			"swap_mb": l.SwapMB > 0, "vcores": l.VCores > 0, "cpu_hard": l.CPUHard, "pids": l.Pids > 0,
		} {
			if is {
				cannot[limit] = why
			}
		}
		delete(cannot, "memory_mb") // it is watched, as in the process engine
		if l.SwapMB == 0 {
			delete(cannot, "swap_mb")
		}
	}
	return unenforced(cannot)
}

// walls are the boundary of a container.
type walls struct {
	container *container.Container
	group     *cgroup.Group // nil: it has none
	watch     *memoryWatch  // then
}

func (w *walls) begin() {
	if w.group == nil {
		w.watch.begin()
		return
	}
	w.group.Begin()
}

func (w *walls) usage() (Usage, error) {
	if w.group == nil {
		return w.watch.usage()
	}
	u, err := w.group.Usage()
	return Usage(u), err
}

func (w *walls) grow(memory int64) error {
	if w.group == nil {
		return w.watch.grow(memory)
	}
	return w.group.SetMemory(memory)
}

// kill leaves it to the guard, the first process of a pid namespace: its kill(-1) misses nobody, and it must live.
func (w *walls) kill() error { return nil }

func (w *walls) remove(ctx context.Context) error {
	if w.group != nil {
		if err := stuckIn(w.group.Remove(ctx)); err != nil {
			return err
		}
	}
	return w.container.Remove()
}

func (w *walls) left() Remains {
	return Remains{Cgroups: w.container.Cgroups(), Dirs: []string{w.container.Dir()}}
}

// giveUp ends a container that is no use.
func (w *walls) giveUp() error {
	_ = w.container.Kill() // it may have ended
	_, err := w.container.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
	defer cancel()
	return errors.Join(err, w.remove(ctx))
}
