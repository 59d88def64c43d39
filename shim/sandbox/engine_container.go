package sandbox

import (
	"context"
	"os"

	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// Container is the engine that gives an instance namespaces, a root and a cgroup of its own. The guard is its first
// process.
type Container struct{}

// Name is the word of the plan.
func (Container) Name() string { return "container" }

// Park makes the container with a guard in it.
func (e Container) Park(ctx context.Context, o Options) (*Guard, error) {
	return park(ctx, o, func(lifeline, socket, exe *os.File) (child, boundary, error) {
		c, err := container.Run(e.spec(o.Confine), lifeline, socket, exe)
		if err != nil {
			return nil, nil, err
		}
		return c, walls{Container: c}, nil
	})
}

func (e Container) spec(c Confinement) container.Spec {
	return container.Spec{
		App: c.App, Instance: c.Instance, Hostname: c.Hostname, Dir: c.Dir,
		Root: c.Root, Mounts: c.Mounts, Limits: c.Limits, Shm: c.Shm, Nodes: c.Nodes, Hooks: c.Hooks,
		Cgroup: "muster/" + c.App + "/" + c.Instance,
	}
}

// Unenforced names the limits of l that the container engine does not hold here, and why.
func (e Container) Unenforced(l plan.Limits) []plan.Unenforced { return nil }

type walls struct {
	*container.Container
	nothing
}

func (w walls) remove(context.Context) error { return w.Remove() }
