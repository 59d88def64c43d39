package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/prepare"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// checkConfinement says how a process is held to its limits here.
func checkConfinement(ctx context.Context, found launcher.Found, o Options) []Check {
	choice, err := sandbox.Choose(ctx, "auto", false)
	if err != nil {
		return []Check{bad("engine", "mount /proc and /sys", "%v", err)}
	}
	tree := choice.Support.Tree
	return []Check{
		checkEngine(choice), checkIDs(o), checkNetworkFiles(found, o, magicOf),
		checkContainer(choice.Support), checkCgroup(tree),
		checkDelegation(tree), checkFeatures(tree), checkEnvelope(tree),
		checkImages(choice.Support, filepath.Join(cachedir.Default(), "image"), o),
	}
}

// checkIDs says whose user and group ids processes have on this host by the policy.
func checkIDs(o Options) Check {
	const name = "ids"
	p := o.Policy
	switch {
	case o.PolicyErr != nil:
		return good(name, "not known while the policy cannot be read")
	case os.Geteuid() != 0:
		return good(name, "a process has this user's, uid %d", os.Geteuid())
	case !prepare.RootOfHost():
		return good(name, "a process has the agent's: this root is one of its launcher's container")
	case p.HostIDs() && p.RefusesRoot():
		return good(name, "the host's own, as userns host says; on the host's own root a process needs a muster.user")
	case p.HostIDs():
		return bad(name, "leave userns host out: --userns, MUSTER_AGENT_USERNS and "+p.File+" say it", "a process "+
			"without muster.user is root of this host: userns is host and refuse_root false")
	}
	pool, err := subids.HostPool()
	if err == nil {
		err = sandbox.TryIDs(pool)
	}
	if err != nil {
		return bad(name, "allow user namespaces (sysctl user.max_user_namespaces), or "+p.Admit(`"userns": "host"`)+
			": until then no process starts", "%v", err).needed()
	}
	return good(name, "subordinate, %d blocks of %d from %d on: %s", pool.Blocks(), subids.BlockSize, pool.UIDs.First,
		pool.From)
}

// checkEngine says which engine confines processes, and which limits are not enforced.
func checkEngine(c sandbox.Choice) Check {
	choice := prepare.EngineChoice(c, policy.Policy{})
	delete(choice.Cannot, "gpu_memory_mb") // the check of GPUs shows it,
	delete(choice.Cannot, "high_mb")       // and the check of features this
	if len(choice.Cannot) == 0 {
		return good("engine", "%s (%s): every limit is enforced", choice.Name, choice.Why)
	}
	return bad("engine", "the launcher's own limits still hold; a definition's are named as unenforced in plan and "+
		"status",
		"%s (%s), which does not enforce %s", choice.Name, choice.Why,
		strings.Join(slices.Sorted(maps.Keys(choice.Cannot)), ", "))
}

func checkContainer(s sandbox.Support) Check {
	const name = "containers"
	if s.Container == "" {
		const can = "can be made, with mount, pid, ipc and uts namespaces"
		switch profile, err := container.AppArmor(""); {
		case err != nil:
			return bad(name, "mount /sys and securityfs", "%s; the AppArmor profiles cannot be read: %v", can, err)
		case profile != "":
			return good(name, "%s, AppArmor profile %s", can, profile)
		}
		return good(name, can)
	}
	remedy := "run the agent as root with CAP_SYS_ADMIN, or let users make namespaces: " +
		"sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone and " +
		"kernel.apparmor_restrict_unprivileged_userns decide"
	return bad(name, remedy, "cannot be made: %s", s.Container)
}

// checkCgroup names the kind of cgroups and the controllers that can be written.
func checkCgroup(t cgroup.Tree) Check {
	const name = "cgroup"
	if t.Mode == cgroup.None {
		return bad(name, "mount a cgroup file system at /sys/fs/cgroup", "none is mounted")
	}
	var can, cannot []string
	for _, controller := range slices.Sorted(maps.Keys(t.Controllers)) {
		if c := t.Controllers[controller]; c.Why == "" {
			can = append(can, controller)
		} else {
			cannot = append(cannot, controller+" ("+c.Why+")")
		}
	}
	switch {
	case len(can) == 0:
		return bad(name, cgroupRemedy(t), "%s, no controller can be used: %s", t.Mode, strings.Join(cannot, "; "))
	case len(cannot) > 0:
		return bad(name, cgroupRemedy(t), "%s, with %s; not %s", t.Mode, strings.Join(can, ", "),
			strings.Join(cannot, "; "))
	}
	return good(name, "%s, with %s", t.Mode, strings.Join(can, ", "))
}

func cgroupRemedy(t cgroup.Tree) string {
	if t.Mode == cgroup.V2 {
		return "let the launcher delegate the cgroup (systemd: Delegate=yes; a container: mount /sys/fs/cgroup " +
			"writable)"
	}
	return "run the agent as root, or boot with systemd.unified_cgroup_hierarchy=1 for cgroup v2, which can be " +
		"delegated to users"
}

// checkDelegation says which part of cgroup v2 this process may manage.
func checkDelegation(t cgroup.Tree) Check {
	const name = "delegation"
	cannot := t.Cannot()
	holdsAll := cannot["memory_mb"]+cannot["swap_mb"]+cannot["vcores"]+cannot["pids"] == ""
	switch {
	case t.Mode != cgroup.V2:
		return good(name, "does not exist with cgroup %s: root alone makes cgroups", t.Mode)
	case os.Geteuid() == 0 && holdsAll && !t.Delegated:
		return good(name, "not needed: this process is root")
	case t.Root:
		return good(name, "not needed: this process is in the host's root cgroup")
	case t.Delegated:
		return good(name, "%s is ours to arrange; its agents move to a leaf below it", t.Dir)
	}
	return bad(name, "systemd: Delegate=yes in the unit, or systemd-run --user -p Delegate=yes", "%s is not ours",
		t.Dir)
}

// checkFeatures names what the kernel's cgroups lack.
func checkFeatures(t cgroup.Tree) Check {
	const name = "cgroup features"
	missing := t.Missing()
	if len(missing) == 0 {
		return good(name, "%s", strings.Join(t.Features, ", "))
	}
	return bad(name, "cgroup v2 with Linux 5.19 or later has them; muster works without: it freezes, kills and "+
		"thaws, and counts by itself",
		"without %s", strings.Join(missing, ", "))
}

// checkEnvelope shows the limits that this process already has.
func checkEnvelope(t cgroup.Tree) Check {
	memory, vcores := t.Envelope()
	var limits []string
	if memory > 0 {
		limits = append(limits, fmt.Sprintf("%d MB of memory", memory))
	}
	if vcores > 0 {
		limits = append(limits, appdef.Counted(vcores, "core"))
	}
	if limits == nil {
		return good("envelope", "no limit around this process")
	}
	return good("envelope", "%s around this process; an app that asks for more is refused",
		strings.Join(limits, " and "))
}

// checkImages asks whether a container can have an image's root, and where images are stored.
func checkImages(s sandbox.Support, cache string, o Options) Check {
	const name = "images"
	if s.Container != "" {
		return bad(name, "see containers above", "muster.image needs engine container")
	}
	there := existing(cache)
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		return bad(name, "set XDG_CACHE_HOME to a folder that can be written", "the cache %s cannot be made: %v", cache,
			err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(there, &disk); err != nil {
		return bad(name, "set XDG_CACHE_HOME to a folder on a local disk", "%s: %v", cache, err)
	}
	free := disk.Bavail * uint64(disk.Bsize) >> 30
	return good(name, "can be pulled to %s, %d GiB free%s", cache, free, imageOwners(there, o))
}

// imageOwners says how a container with ids of its own gets an image's files with these as owners; "": it has none, or
// that is not known.
func imageOwners(dir string, o Options) string {
	if o.PolicyErr != nil || !prepare.MakesIDs(o.Policy) {
		return ""
	}
	pool, err := subids.HostPool()
	if err != nil {
		return ""
	}
	err = container.TryOwners(dir, subids.New(subids.Block{UID: pool.UIDs.First, GID: pool.GIDs.First}, nil, nil))
	if err != nil {
		return fmt.Sprintf("; layers are copied once for each app's ids: %v", err)
	}
	return "; layers are mounted with each app's ids"
}

// checkGPU asks muster-gpu, and looks for device nodes. root is / or a copy of it.
func checkGPU(ctx context.Context, root string) Check {
	const name = "gpu"
	nodes, err := gpu.NodesInventory(root)
	if err != nil {
		return bad(name, "look at /dev and the driver's kernel module", "%v", err)
	}
	count := len(nodes.Devices)
	path := gpu.FindHelper()
	switch {
	case count == 0:
		return good(name, "no device nodes")
	case path == nil:
		return bad(name, "put muster-gpu beside muster for health, memory and choice by links",
			"%s by device nodes, no muster-gpu", appdef.Counted(count, "GPU"))
	}
	ctx, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	helper, err := gpu.Open(ctx, *path, slog.New(slog.DiscardHandler))
	if err != nil {
		return bad(name, "install the NVIDIA driver's libraries (libnvidia-ml.so.1) for this host",
			"%s by device nodes: %v", appdef.Counted(count, "GPU"), err)
	}
	defer helper.Close()
	inventory, err := helper.Inventory(ctx)
	if err != nil {
		return bad(name, "run nvidia-smi: it says what the driver lacks", "%s: %v", appdef.Counted(count, "GPU"), err)
	}
	for _, f := range gpu.Gate(inventory.Devices, gpu.Policy{Shared: true}) {
		if f.Refuses() {
			return bad(name, f.Remedy, "driver %s, %s: %s", inventory.Driver,
				appdef.Counted(len(inventory.Devices), "GPU"), f)
		}
	}
	return good(name, "driver %s, %s, all fit", inventory.Driver, appdef.Counted(len(inventory.Devices), "GPU"))
}
