package main

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

// megabyte is MiB, as in YARN.
const megabyte = 1 << 20

// permitted holds a plan against what was insisted on and what the operator's policy says.
func (a *agent) permitted(p plan.Plan) error {
	if a.requireLimits && len(p.Engine.Unenforced) > 0 {
		var missing []string
		for _, u := range p.Engine.Unenforced {
			missing = append(missing, u.Limit+" ("+u.Why+")")
		}
		return fault.NotPermitted(fmt.Errorf("--require-limits: engine %s does not enforce %s", p.Engine.Name, strings.Join(missing, ", ")))
	}
	uid := os.Geteuid()
	if a.user != nil {
		uid = a.user.UID // whatever name or spelling it was found by
	}
	if a.policy.RefuseRoot && uid == 0 && p.Root.Kind != plan.RootImage {
		return fault.NotPermitted(errors.New("the policy of this host refuses root on the host's root: set muster.user"))
	}
	if err := a.mayBe(p); err != nil {
		return fault.NotPermitted(err)
	}
	return a.admission(p).Checkpoint(p.Checkpoint.Dir)
}

// confinement is the plan's limits and root as an engine takes them.
func (a *agent) confinement(p plan.Plan, in registry.Instance) (sandbox.Confinement, error) {
	l := p.Limits
	c := sandbox.Confinement{
		App: a.id.appID, Instance: a.boundaryName(in), Hostname: hostName(in), Address: a.address(), Dir: filepath.Join(a.workDir, "root", in.String()),
		Limits: cgroup.Limits{
			Memory: int64(l.MemoryMB) * megabyte, High: int64(l.HighMB) * megabyte, Swap: int64(l.SwapMB) * megabyte, Group: true,
			CPU: l.VCores, Hard: l.CPUHard, Pids: int64(l.Pids), Devices: []cgroup.Device{},
		},
		Shm: int64(l.ShmMB) * megabyte, User: a.credential(), Seccomp: a.policy.Filter,
	}
	if c.User != nil {
		c.User.Groups = append(c.User.Groups, a.gpus.Groups()...)
	}
	nodes := a.gpus.Nodes()
	if l.RDMA {
		found, err := infiniband("/dev/infiniband")
		if err != nil {
			return c, fault.NotPermitted(err)
		}
		nodes = append(nodes, found...)
	}
	c.Nodes = nodes
	if p.Root.Kind == plan.RootHost {
		return c, nil
	}
	c.Root = a.image.root()
	if p.Root.Kind == plan.RootOverlay {
		if os.Geteuid() != 0 {
			return c, fault.NotPermitted(errors.New("muster.root=overlay: only an agent that is root can lay one over the host's folders; leave it out, or use an image"))
		}
		var err error
		if c.Root, err = overlayOfHost(); err != nil {
			return c, err
		}
	}
	c.Mounts = append(a.mounts(p, in), a.gpus.Mounts()...)
	c.Hooks = a.gpus.Hooks()
	return c, nil
}

// agentScore is the agent's own oom_score_adj (proc(5)): where a host has no memory left the kernel ends its jobs before
// those who answer for them.
const agentScore = -500

// standing is what the launcher gave an agent among the processes of the host: its jobs have the same.
type standing struct{ oomScore, nice int }

// standingOf reads the agent's own, before it lowers its score. What spares the agent is not its jobs': theirs is 0.
func standingOf() standing {
	var s standing
	if score, ok := oomScore(); ok {
		s.oomScore = max(score, 0)
	}
	const base = 20 // getpriority(2) as the kernel answers it: 20 less the niceness, so that no answer is an error's
	if n, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
		s.nice = base - n
	}
	return s
}

const oomScoreFile = "/proc/self/oom_score_adj"

func oomScore() (score int, ok bool) {
	text, err := os.ReadFile(oomScoreFile)
	if err != nil {
		return 0, false
	}
	score, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return score, err == nil
}

// outlast lowers the agent's score where that is permitted; an ordinary user may only raise one.
func outlast() {
	if score, ok := oomScore(); ok && score > agentScore {
		_ = os.WriteFile(oomScoreFile, []byte(strconv.Itoa(agentScore)), 0)
	}
}

// boundaryName names the cgroup of an instance: by the instance, unless an agent that lives on this host has that name: of
// a run with the same app id in another registry, or one that this agent supersedes.
func (a *agent) boundaryName(in registry.Instance) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.boundary != "" {
		return a.boundary
	}
	a.boundary = in.String()
	lock, err := hostlock.Take("cgroup/" + a.id.appID + "/" + in.String())
	if err != nil {
		a.boundary += "." + strconv.Itoa(os.Getpid())
		a.log.Info("the cgroup of this name is another agent's", "taken", a.boundary, "err", err)
		return a.boundary
	}
	a.closers = append(a.closers, func() {
		if err := lock.Release(); err != nil {
			a.log.Warn("give up the cgroup's name", "err", err)
		}
	})
	return a.boundary
}

// mounts are the folders of the run that the process works in, at the place that they have on the host.
func (a *agent) mounts(p plan.Plan, in registry.Instance) []container.Mount {
	own := func(path string) container.Mount { return container.Mount{From: path, To: path, Options: inert} }
	var all []container.Mount
	for _, m := range a.policy.Mounts {
		all = append(all, container.Mount{From: m.Path, To: m.To, ReadOnly: m.ReadOnly, Options: inert})
	}
	shared := filepath.Join(a.workDir, "package")
	all = append(all, container.Mount{From: shared, To: shared, ReadOnly: true, Options: inert})
	if dir := p.Checkpoint.Dir; files.Within(dir, a.workDir) && !files.Within(dir, p.Process.Folder) {
		// All of what the processes own there: further down they could have put a link in the way since.
		all = append(all, own(filepath.Join(a.workDir, a.admission(p).UnderWork(dir))))
	}
	for _, dir := range a.dataFolders(p) {
		all = append(all, own(dir))
	}
	all = append(all, a.hadoopMounts(p)...)
	all = append(all, own(p.Process.Folder), own(filepath.Join(a.logDir, in.String())), own(a.state.Socket(a.id.appID, in.String())))
	return append(all, codeMounts(p)...)
}

// inert are the options of a folder of the host: a node or a set-user-id program that lies in it is nothing in a container.
var inert = []string{"nosuid", "nodev"}

// address is what the host name of a container means: the one that peers know, where it is a number.
func (a *agent) address() string {
	if _, err := netip.ParseAddr(a.alloc.Host); err != nil {
		return ""
	}
	return a.alloc.Host
}

// hostName is the instance as a name that gethostname(2) may return: 64 bytes of letters, digits, dots and dashes.
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

// overlayOfHost is the host's root as the lowest layer of a private, writable one. File systems that are mounted
// below a top-level folder are not in it.
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
			continue // a swap file is no part of what programs look for
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

// deviceNode reads what a node is; its type is 0 when it is none.
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
