package prepare

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// Permitted checks a plan against --require-limits, the operator's policy and the process's own rights.
func (c *Container) Permitted(p plan.Plan) error {
	if c.RequireLimits && len(p.Engine.Unenforced) > 0 {
		var missing []string
		for _, u := range p.Engine.Unenforced {
			missing = append(missing, u.Limit+" ("+u.Why+")")
		}
		return fault.NotPermitted(fmt.Errorf("--require-limits: engine %s does not enforce %s", p.Engine.Name,
			strings.Join(missing, ", ")))
	}
	if err := c.refuseRoot(p); err != nil {
		return fault.NotPermitted(err)
	}
	if err := c.checkIDs(); err != nil {
		return imageFault(err)
	}
	if _, err := c.Secrets(p).Read(p.Process.SecretRefs); fault.Is(err, registry.ClassNotPermitted) {
		return err // what is merely missing may be there at the start
	}
	if err := c.checkMounts(p); err != nil {
		return err
	}
	return c.Places(p)
}

// Places refuses folders for checkpoints and outputs where the agent may not write for the definition.
func (c *Container) Places(p plan.Plan) error {
	admission := c.Admission(p)
	if err := admission.Checkpoint(p.Checkpoint.Dir); err != nil || p.Outputs == nil {
		return err
	}
	for _, one := range p.Outputs.To {
		path, local := strings.CutPrefix(one.To, "file://")
		if !local {
			path, local = one.To, strings.HasPrefix(one.To, "/") && c.plainIsLocal()
		}
		if !local {
			continue
		}
		if err := admission.Write(path); err != nil {
			return fmt.Errorf("output %s: %w", one.Name, err)
		}
	}
	return nil
}

// plainIsLocal tells that a path without a scheme is one of this host, as it stands.
func (c *Container) plainIsLocal() bool {
	return c.DefaultFS.Local() == "" && (c.DefaultFS.URI == "" || strings.HasPrefix(c.DefaultFS.URI, "file:"))
}

// refuseRoot refuses a process that would be the host's root, on its own files. A root that is only so in a container
// of the launcher's is refused where the policy says so.
func (c *Container) refuseRoot(p plan.Plan) error {
	uid := os.Geteuid()
	if u := c.Owner(); u != nil {
		uid = u.UID // however it was named
	}
	asked := c.Policy.RefuseRoot != nil || RootOfHost()
	if uid != 0 || p.Root.Kind == plan.RootImage || !asked || !c.Policy.RefusesRoot() {
		return nil
	}
	return fmt.Errorf("the process would be root of this host, which its policy refuses: set muster.user, leave "+
		"userns host out (--userns, MUSTER_AGENT_USERNS and %s say it), or let the operator %s", c.Policy.File,
		c.Policy.Admit(`"refuse_root": false`))
}

// confinement is the plan's limits and root in the form of an engine.
func (c *Container) confinement(p plan.Plan, in registry.Instance) (sandbox.Confinement, error) {
	l := p.Limits
	out := sandbox.Confinement{
		App: c.AppID, Instance: c.cgroupName(in), Hostname: hostName(in), Address: c.address(),
		Dir: filepath.Join(c.WorkDir, "root", in.String()),
		Limits: cgroup.Limits{
			Memory: int64(l.MemoryMB) * megabyte, High: int64(l.HighMB) * megabyte, Swap: int64(l.SwapMB) * megabyte,
			Group: true, CPU: l.VCores, Hard: l.CPUHard, Pids: int64(l.Pids), Devices: []cgroup.Device{},
		},
		Shm: int64(l.ShmMB) * megabyte, User: c.Credential(),
		Unfiltered: c.Policy.Seccomp.Unconfined, AppArmor: c.Policy.Label.AppArmor,
	}
	var err error
	if out.Seccomp, err = c.Policy.Seccomp.Filter(); err != nil {
		return out, fault.NotPermitted(fmt.Errorf("the policy's seccomp: %w", err))
	}
	if out.User != nil {
		out.User.Groups = append(out.User.Groups, c.GPUs.Groups()...)
	}
	out.User, out.IDs = c.confineIDs(out.User, c.GPUs.Groups())
	nodes := c.GPUs.Nodes()
	if l.RDMA {
		found, err := infiniband("/dev/infiniband")
		if err != nil {
			return out, fault.NotPermitted(err)
		}
		nodes = append(nodes, found...)
	}
	out.Nodes = nodes
	if p.Root.Kind == plan.RootHost {
		return out, nil
	}
	out.Root = c.image.root()
	if p.Root.Kind == plan.RootOverlay {
		if os.Geteuid() != 0 {
			return out, fault.NotPermitted(errors.New("muster.root=overlay: only an agent that is root can lay one " +
				"over the host's folders; leave it out, or use an image"))
		}
		if out.Root, err = overlayOfHost(); err != nil {
			return out, err
		}
	}
	out.Mounts = append(c.mounts(p, in), c.GPUs.Mounts()...)
	out.Hooks = c.GPUs.Hooks()
	return out, nil
}

// cgroupName names the cgroup of an instance: by the instance, unless a living agent of this host has that name, of a
// run with the same app id in another registry, or one that this agent supersedes.
func (c *Container) cgroupName(in registry.Instance) string {
	if c.cgroup != "" {
		return c.cgroup
	}
	c.cgroup = in.String()
	lock, err := hostlock.Take("cgroup/" + c.AppID + "/" + in.String())
	if err != nil {
		c.cgroup += "." + strconv.Itoa(os.Getpid())
		c.Log.Info("the cgroup of this name is another agent's", "taken", c.cgroup, "err", err)
		return c.cgroup
	}
	c.atEnd(func() {
		if err := lock.Release(); err != nil {
			c.Log.Warn("name of the cgroup not released", "err", err)
		}
	})
	return c.cgroup
}

// mounts are the run's folders that the process works in, at their paths of the host.
func (c *Container) mounts(p plan.Plan, in registry.Instance) []container.Mount {
	own := func(path string) container.Mount { return container.Mount{From: path, To: path, Options: inert} }
	var all []container.Mount
	for _, m := range c.Policy.Mounts {
		all = append(all, container.Mount{From: m.Path, To: m.To, ReadOnly: m.ReadOnly, Options: inert})
	}
	shared := filepath.Join(c.WorkDir, "package")
	all = append(all, container.Mount{From: shared, To: shared, ReadOnly: true, Options: inert})
	if dir := p.Checkpoint.Dir; files.Within(dir, c.WorkDir) && !files.Within(dir, p.Process.Folder) {
		// The processes own all of this: further down they could have put a link in the way.
		all = append(all, own(filepath.Join(c.WorkDir, c.Admission(p).UnderWork(dir))))
	}
	for _, dir := range c.Stores.Folders(p) {
		all = append(all, own(dir))
	}
	all = append(append(all, c.hadoopMounts(p)...), c.secretMounts()...)
	return append(all, own(p.Process.Folder), own(filepath.Join(c.LogDir, in.String())),
		container.Mount{From: c.Socket(in), To: plan.SocketInside, Options: inert})
}

// inert are the mount options of a host's folder: its device nodes and set-user-id programs have no effect in a
// container.
var inert = []string{"nosuid", "nodev"}

// address is the address of a container's host name: the one that peers know, if it is a number.
func (c *Container) address() string {
	if _, err := netip.ParseAddr(c.Host); err != nil {
		return ""
	}
	return c.Host
}

// hostName is the instance as a host name: 64 bytes of letters, digits, dots and dashes (gethostname(2)).
func hostName(in registry.Instance) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '~' {
			return '-'
		}
		return r
	}, in.String())
	const most = 64
	return name[:min(len(name), most)]
}

// overlayOfHost is the host's root as the lowest layer of a private, writable root. File systems mounted below a
// top-level folder are not part of it.
func overlayOfHost() (container.Root, error) {
	entries, err := os.ReadDir("/")
	if err != nil {
		return container.Root{}, fmt.Errorf("the host's root: %w", err)
	}
	root := container.Root{Layers: []string{"/"}}
	for _, e := range entries {
		entry := container.Entry{Name: e.Name(), Dir: e.IsDir()}
		switch {
		case slices.Contains([]string{"proc", "sys", "dev", "run", "tmp"}, e.Name()):
			continue
		case e.IsDir():
			entry.Layers = []string{filepath.Join("/", e.Name())}
		case e.Type() == fs.ModeSymlink:
			if entry.Link, err = os.Readlink(filepath.Join("/", e.Name())); err != nil {
				return root, fmt.Errorf("the host's root: %w", err)
			}
		default:
			continue // programs do not look for a swap file
		}
		root.Entries = append(root.Entries, entry)
	}
	return root, nil
}

// infiniband are the RDMA devices of the host.
func infiniband(dir string) ([]container.Node, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("RDMA devices: %w", err)
	}
	var nodes []container.Node
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		n, err := deviceNode(path)
		if err != nil {
			return nil, fmt.Errorf("RDMA devices: %w", err)
		}
		if n.Type != 0 {
			nodes = append(nodes, n)
		}
	}
	if nodes == nil {
		return nil, fmt.Errorf("muster.rdma: no device in %s; want a host with one, or muster.rdma=false", dir)
	}
	return nodes, nil
}

// deviceNode reads the type and number of a device node; type 0: it is none.
func deviceNode(path string) (container.Node, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return container.Node{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	kind := map[uint32]rune{unix.S_IFCHR: 'c', unix.S_IFBLK: 'b'}[st.Mode&unix.S_IFMT]
	return container.Node{
		Path: path, Type: kind, Major: int64(unix.Major(st.Rdev)), Minor: int64(unix.Minor(st.Rdev)),
		Mode: cmp.Or(st.Mode&0o777, 0o666), UID: st.Uid, GID: st.Gid,
	}, nil
}
