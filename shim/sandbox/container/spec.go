package container

import (
	"time"

	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// Spec is one container: a root, namespaces and a cgroup around a first process.
type Spec struct {
	// ID names the container and its cgroup: muster/<App>/<Instance>.
	App, Instance string
	Hostname      string
	// Dir is a folder of this instance alone, on a disk of the host: what the container writes to its root and to
	// /tmp lies there. Remove removes it. It lies in no folder that the container may write to.
	Dir    string
	Root   Root
	Mounts []Mount
	// Address is what Hostname resolves to by /etc/hosts; "": 127.0.1.1.
	Address string
	// Cgroup is the cgroup that the first process joins before it runs anything of the container: with cgroup v1
	// relative to the agent's own cgroup of each controller, with v2 absolute below the tree's root. The caller has
	// made it, with its limits; hierarchies of v1 that hold none are joined at the same path, which is made there. "":
	// none is joined.
	Cgroup string
	Shm    int64  // bytes of /dev/shm; 0: the kernel's default
	Nodes  []Node // device nodes beside the standard ones
	Hooks  []Hook // of the operator's CDI specs only
	// IDs are the ids of the container's user namespace, root's included; nil: a maker that is root gives it its own,
	// and another its one id as root.
	IDs *subids.Map
	// Caps are the capabilities of the first process beside CAP_SYS_RESOURCE, as 1 << CAP_*.
	Caps uint64
	// AppArmor is the profile of all processes; "": one that other container engines have loaded here, or none.
	AppArmor string

	memoryDir string // of the skeleton and libcontainer's state; set by Run
	stage     *stage // what root mounts before the container is entered; nil: nothing
}

// Root is what the container finds at /.
type Root struct {
	// Layers are unpacked image layers, lowest first; the root is then a private, writable view of them. None: the
	// host's root, read-only, with a private /tmp.
	Layers []string
	// Entries are the top-level names of an image's merged root.
	Entries []Entry
	// UserXattr says that the layers' overlay marks are in user.*.
	UserXattr bool
	// Owned says that the files of the layers have the container's owners on the disk. Else a root that makes a
	// container with ids of its own mounts the layers so.
	Owned bool
}

// Entry is a top-level name of an image's root.
type Entry struct {
	Name   string   // usr
	Link   string   // target, of a symbolic link
	Dir    bool     // neither: a file
	Layers []string // the folders that make it up, lowest first: <layer>/usr
}

// Mount is a folder or file of the host that the container sees.
type Mount struct {
	From, To string // absolute; To is made when it is absent
	ReadOnly bool
	Options  []string // of mount(8): nosuid, nodev, noexec, rbind; beside what ReadOnly says
}

// Node is a device node to have in /dev.
type Node struct {
	Path         string // in the container
	Type         rune   // c or b
	Major, Minor int64
	Mode         uint32 // permission bits; 0: 0666
	UID, GID     uint32
}

// Hook is a program of the operator that runs at a stage of the container's making, in a clean environment.
type Hook struct {
	Stage string // createRuntime, createContainer, startContainer, prestart
	Path  string
	Args  []string
	Env   []string
	// Timeout is how long it may take; 0: as long as it likes.
	Timeout time.Duration
}
