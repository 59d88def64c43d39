package sandbox

import (
	"context"
	"os"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// Confinement is what an engine holds a process tree to. The zero value asks for nothing. Engine.Cannot names what an
// engine does not hold.
type Confinement struct {
	// App and Instance name the cgroup and the container.
	App, Instance string
	Hostname      string
	Address       string // what Hostname resolves to in the container; "": a loopback address
	// Dir is a folder of this instance alone for the container's skeleton and state; it is removed at the end.
	Dir    string
	Limits cgroup.Limits
	Shm    int64 // bytes of /dev/shm
	Root   container.Root
	Mounts []container.Mount
	Nodes  []container.Node
	Hooks  []container.Hook
	// User is whom the processes run as, by its ids in the user namespace; nil: the agent's own user, or root.
	User *guard.User
	// IDs are those of a user namespace for the guard and its processes; nil: they are in the agent's.
	IDs *subids.Map
	// Seccomp is a filter of struct sock_filter (seccomp(2)), installed right before exec; nil: the default of package
	// seccomp, unless Unfiltered says that there shall be none.
	Seccomp    []byte
	Unfiltered bool
	AppArmor   string // the profile of a container; "": one that other engines have loaded, or none
}

// limits are those of the cgroup, whose device list includes the nodes.
func (c Confinement) limits() cgroup.Limits {
	l := c.Limits
	for _, n := range c.Nodes {
		l.Devices = append(l.Devices, cgroup.Device{
			Path: n.Path, Type: n.Type, Major: n.Major, Minor: n.Minor,
			Access: "rw",
		})
	}
	return l
}

// boundary is what an engine has put around a guard and its processes.
type boundary interface {
	// begin notes the counters before a start.
	begin()
	// usage is what was counted since begin.
	usage() (cgroup.Usage, error)
	// load is what it holds and has used now, as far as it counts that.
	load() (cgroup.Load, error)
	// grow sets another limit of memory, in bytes.
	grow(memory int64) error
	// kill ends all processes inside but the guard, while the guard kills its descendants too.
	kill() error
	// remove proves, when the guard has ended, that no process is left and removes the boundary. What does not die
	// until ctx ends is a *proc.StuckError.
	remove(ctx context.Context) error
	// procs is the cgroup.procs file, open for writing, by which each process enters a cgroup that the guard stays out
	// of; nil: what the guard starts is inside.
	procs() *os.File
	// hasOwnPIDs says that the guard's pid namespace is another than the agent's.
	hasOwnPIDs() bool
	// left is what the next agent must clear if this one is killed.
	left() Remains
}

// Remains are paths of the host that outlive an agent which is killed.
type Remains struct {
	Cgroups []string // folders, one for each controller's tree
	// Inodes are the numbers of these folders, by path: another cgroup may have the path later.
	Inodes map[string]uint64
	Dirs   []string // of containers
}

// noBoundary has all methods of a boundary and does nothing.
type noBoundary struct{}

func (noBoundary) begin()                       {}
func (noBoundary) usage() (cgroup.Usage, error) { return cgroup.Usage{}, nil }
func (noBoundary) load() (cgroup.Load, error)   { return cgroup.Uncounted, nil }
func (noBoundary) grow(int64) error             { return nil }
func (noBoundary) kill() error                  { return nil }
func (noBoundary) remove(context.Context) error { return nil }
func (noBoundary) procs() *os.File              { return nil }
func (noBoundary) hasOwnPIDs() bool             { return false }
func (noBoundary) left() Remains                { return Remains{} }

// child is the guard as a process that the agent has started and must wait for.
type child interface {
	PID() int
	Wait() (*os.ProcessState, error)
	Kill() error
}

// direct is a child that the agent has started by itself.
type direct struct{ *os.Process }

// PID of the process in the agent's pid namespace.
func (d direct) PID() int { return d.Pid }
