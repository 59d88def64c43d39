package sandbox

import (
	"context"
	"os"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/guard"
)

// Confinement is what an engine holds a process tree to. The zero value asks for nothing. What an
// engine cannot hold it has named by Cannot.
type Confinement struct {
	// App and Instance name the cgroup and the container.
	App, Instance string
	Hostname      string
	Address       string // what Hostname means to the processes; "": a loopback address
	// Dir is a folder of this instance alone for the container's skeleton and state; it is taken away at the end.
	Dir     string
	Limits  cgroup.Limits
	Shm     int64 // bytes of /dev/shm
	Root    container.Root
	Mounts  []container.Mount
	Nodes   []container.Node
	Hooks   []container.Hook
	User    *guard.User // whom the processes run as; nil: the agent's own user
	Seccomp []byte      // a filter of struct sock_filter (seccomp(2)), installed right before exec
}

// limits are those of the cgroup: what it lets be opened includes the nodes.
func (c Confinement) limits() cgroup.Limits {
	l := c.Limits
	for _, n := range c.Nodes {
		l.Devices = append(l.Devices, cgroup.Device{Path: n.Path, Type: n.Type, Major: n.Major, Minor: n.Minor, Access: "rw"})
	}
	return l
}

// boundary is what an engine has put around a guard and its processes.
type boundary interface {
	// begin notes the counters before a start.
	begin()
	// usage is what was counted since begin.
	usage() (cgroup.Usage, error)
	// grow sets another limit of memory, in bytes.
	grow(memory int64) error
	// kill ends all processes inside but the guard; the guard's own walk goes on beside it.
	kill() error
	// remove proves, when the guard has ended, that no process is left and takes the boundary away. What will not go
	// until ctx ends is a *StuckError.
	remove(ctx context.Context) error
	// procs is the cgroup.procs file, open for writing, by which each process enters a cgroup that the guard stays out of;
	// nil: what the guard starts is inside.
	procs() *os.File
	// apart says that the guard's pid namespace is another than the agent's.
	hasOwnPIDs() bool
	// left is what must be cleared by the next agent if this one is killed.
	left() Remains
}

// Remains are paths of the host that outlive an agent which is killed.
type Remains struct {
	Cgroups []string // folders, one for each controller's tree
	Dirs    []string // of containers
}

// nothing is the boundary of an engine that has none.
type noBoundary struct{}

func (noBoundary) begin()                       {}
func (noBoundary) usage() (cgroup.Usage, error) { return cgroup.Usage{}, nil }
func (noBoundary) grow(int64) error             { return nil }
func (noBoundary) kill() error                  { return nil }
func (noBoundary) remove(context.Context) error { return nil }
func (noBoundary) procs() *os.File              { return nil }
func (noBoundary) hasOwnPIDs() bool                  { return false }
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
