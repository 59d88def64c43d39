package container

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// identity is the user who makes the container.
type identity struct {
	uid, gid int
	rootless bool
	ids      *subids.Map // of the container's user namespace; nil: it is in the maker's
	caps     uint64      // that the first process can be given, as 1 << CAP_*
}

// currentIdentity is the maker's, for a container with these ids.
func currentIdentity(ids *subids.Map) (identity, error) {
	who := identity{uid: os.Geteuid(), gid: os.Getegid(), rootless: os.Geteuid() != 0, ids: ids, caps: ^uint64(0)}
	if who.rootless { // an ordinary user has one id to give
		who.ids = &subids.Map{
			UIDs: []subids.Range{{Outside: who.uid, Size: 1}}, GIDs: []subids.Range{{Outside: who.gid, Size: 1}},
		}
	}
	if who.ids != nil {
		return who, nil // in its own user namespace it has all
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return who, fmt.Errorf("read capabilities: %w", err)
	}
	who.caps = uint64(data[0].Permitted) | uint64(data[1].Permitted)<<32
	return who, nil
}

// mapped tells whether the maker is root and the container's ids are others than its own.
func (i identity) mapped() bool { return !i.rootless && i.ids != nil }

// give makes a file that root has made a user's of the container, by its ids inside.
func (i identity) give(path string, uid, gid int) error {
	if i.rootless {
		return nil
	}
	if i.ids != nil {
		var ok bool
		if uid, ok = i.ids.UID(uid); !ok {
			return fmt.Errorf("give %s: %w", path, errNoID)
		}
		if gid, ok = i.ids.GID(gid); !ok {
			return fmt.Errorf("give %s: %w", path, errNoID)
		}
	}
	return os.Lchown(path, uid, gid)
}

// errNoID says that an image has a user beyond those that a container's user namespace has.
var errNoID = fmt.Errorf("its owner is beyond the %d users and groups of a container", subids.BlockSize)

// admit lets the container's root, and nobody else, through a folder of the maker's.
func (i identity) admit(dir string) error {
	if !i.mapped() {
		return nil
	}
	gid, _ := i.ids.GID(0)
	if err := os.Lchown(dir, i.uid, gid); err != nil {
		return err
	}
	return os.Chmod(dir, 0o710) //nolint:gosec // of that group alone
}

func (s *Spec) config() (*configs.Config, error) {
	who, err := currentIdentity(s.IDs)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{s.Dir, s.memoryDir} {
		if err := who.admit(dir); err != nil {
			return nil, err
		}
	}
	root := filepath.Join(s.memoryDir, "root")
	if len(s.Root.Layers) > 0 { // the container may write to it, and what it writes must not be memory
		root = filepath.Join(s.Dir, "root")
	}
	mounts, err := s.build(root, who)
	if err != nil {
		return nil, err
	}
	nodes, err := deviceNodes(s.Nodes)
	if err != nil {
		return nil, err
	}
	if who.mapped() {
		if nodes, mounts, err = s.shownNodes(nodes, mounts); err != nil {
			return nil, err
		}
	}
	profile, err := AppArmor(s.AppArmor)
	if err != nil {
		return nil, err
	}
	c := &configs.Config{
		Rootfs: root,
		// A slave mount would show what the host mounts later, writable, which is a hole. A private one only keeps what
		// the host unmounts until the container ends.
		RootPropagation: unix.MS_PRIVATE | unix.MS_REC,
		Readonlyfs:      len(s.Root.Layers) == 0,
		Mounts:          mounts,
		Devices:         nodes,
		Hostname:        s.Hostname,
		Capabilities:    capabilities(who.caps, s.Caps),
		NoNewPrivileges: true,
		AppArmorProfile: profile,
		MaskPaths:       append([]string{s.Dir}, maskedPaths...),
		ReadonlyPaths:   readonlyPaths,
		Cgroups:         s.cgroupOf(who),
		RootlessEUID:    who.rootless,
		RootlessCgroups: s.Cgroup == "",
	}
	c.Namespaces = namespaces(who)
	if who.ids != nil {
		c.UIDMappings, c.GIDMappings = mappings(who.ids.UIDs), mappings(who.ids.GIDs)
	}
	return c, s.hooks(c)
}

func mappings(ranges []subids.Range) []configs.IDMap {
	var all []configs.IDMap
	for _, r := range ranges {
		all = append(all, configs.IDMap{ContainerID: int64(r.Inside), HostID: int64(r.Outside), Size: int64(r.Size)})
	}
	return all
}

// cgroupOf is the cgroup that libcontainer moves the first process to. Its limits are written already: libcontainer
// gets none to write, and refuses to have no Resources at all.
func (s Spec) cgroupOf(who identity) *cgroups.Cgroup {
	if s.Cgroup == "" {
		// Without a path a rootless container stays in the agent's own cgroup where no other can be made.
		return &cgroups.Cgroup{Name: s.id(), Rootless: true, Resources: &cgroups.Resources{}}
	}
	return &cgroups.Cgroup{Path: s.Cgroup, Rootless: who.rootless, Resources: &cgroups.Resources{}}
}

// namespaces are those of a container. The network is the host's: the gang's ports are the host's ports. The container
// sees its own cgroup as the root, so that runtimes which size themselves by it find it. Where it cannot have a cgroup
// namespace, bind mounts do the same on v1, at twice the cost.
func namespaces(who identity) configs.Namespaces {
	all := configs.Namespaces{
		{Type: configs.NEWNS},
		{Type: configs.NEWPID},
		{Type: configs.NEWIPC},
		{Type: configs.NEWUTS},
	}
	if who.ids != nil {
		all = append(all, configs.Namespace{Type: configs.NEWUSER})
	}
	if cgroups.IsCgroup2UnifiedMode() || !who.rootless && mountedByName(ownHierarchies()) {
		all = append(all, configs.Namespace{Type: configs.NEWCGROUP})
	}
	return all
}

// ownHierarchies are the hierarchies of v1 that this process is in, read as libcontainer reads them.
func ownHierarchies() (own map[string]string, mounts []cgroups.Mount, err error) {
	if own, err = cgroups.ParseCgroupFile("/proc/self/cgroup"); err == nil {
		mounts, err = cgroups.GetCgroupMounts(false)
	}
	return own, mounts, err
}

// mountedByName tells whether each hierarchy of v1 is mounted under the names of its controllers: in a cgroup namespace
// libcontainer mounts what the folder's name says. Of hierarchies with a name and no controller it knows systemd's
// alone.
func mountedByName(own map[string]string, mounts []cgroups.Mount, err error) bool {
	for controller := range own {
		if strings.HasPrefix(controller, cgroups.CgroupNamePrefix) && controller != cgroups.CgroupNamePrefix+"systemd" {
			return false
		}
	}
	return err == nil && !slices.ContainsFunc(mounts, func(m cgroups.Mount) bool {
		names := slices.Sorted(strings.SplitSeq(filepath.Base(m.Mountpoint), ","))
		return !slices.Equal(names, slices.Sorted(slices.Values(m.Subsystems)))
	})
}

var stages = map[string]configs.HookName{
	"prestart":        configs.Prestart,
	"createRuntime":   configs.CreateRuntime,
	"createContainer": configs.CreateContainer,
	"startContainer":  configs.StartContainer,
}

// hooks run in the environment of the operator's spec alone. An empty one would become the agent's, or the
// container's (CVE-2025-23266).
func (s Spec) hooks(c *configs.Config) error {
	if len(s.Hooks) == 0 {
		return nil
	}
	c.Hooks = configs.Hooks{}
	for _, h := range s.Hooks {
		stage, ok := stages[h.Stage]
		if !ok {
			return fmt.Errorf("hook %s: stage %q is not known", h.Path, h.Stage)
		}
		env := h.Env
		if len(env) == 0 {
			env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		}
		c.Hooks[stage] = append(c.Hooks[stage], configs.NewCommandHook(&configs.Command{
			Path: h.Path, Args: h.Args,
			Env: env, Timeout: timeout(h.Timeout),
		}))
	}
	c.Labels = []string{"bundle=" + s.Dir}
	return writeBundle(s.Dir, c.Rootfs)
}

// writeBundle is for hooks that look for the root in the bundle's config.json, as those of CDI do.
func writeBundle(dir, root string) error {
	b, err := json.Marshal(map[string]any{"ociVersion": "1.2.0", "root": map[string]string{"path": root}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600)
}

// timeout is libcontainer's form of an optional time.
func timeout(d time.Duration) *time.Duration {
	if d == 0 {
		return nil
	}
	return &d
}
