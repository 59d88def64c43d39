package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mode is which kind of cgroups holds the controllers of a host.
type Mode string

// The modes. In Hybrid the controllers are those of v1, beside a v2 hierarchy without those that muster uses.
const (
	None   Mode = "none"
	V1     Mode = "v1"
	Hybrid Mode = "hybrid"
	V2     Mode = "v2"
)

// leafName is the cgroup below a delegated one that its agents move to; they share it.
const leafName = "muster-agent"

// Tree is what a process may do with the cgroups that it is in. It is a value: later changes are not seen.
type Tree struct {
	Mode Mode
	// Controllers by name: memory, cpu, pids; on v1 all hierarchies of the kernel, of which a group that we make
	// uses cpuacct, freezer and devices too.
	Controllers map[string]Controller
	// Dir is the folder of the own cgroup on v2, that above the agents' leaf. "" on v1.
	Dir string
	// Root says that Dir is the host's very root, which may hold processes beside cgroups.
	Root bool
	// Delegated says that Dir and all below it is ours to arrange, as with systemd's Delegate=.
	Delegated bool
	// Swap says that the kernel counts swap by cgroup.
	Swap bool
	// Features of cgroup v2 that this kernel has: cgroup.kill, memory.high, memory.oom.group, memory.peak.
	Features []string
	// Protects says that this process may exempt another one when the kernel kills for memory.
	Protects bool
	// NoDevices is why a list of devices cannot be enforced; "" when it can.
	NoDevices string

	beside string // folder of the own cgroup in the v2 hierarchy of a hybrid host
	host   Host
}

// Controller is where one controller has the cgroups of muster.
type Controller struct {
	Dir   string // folder of the own cgroup
	Mount string // where its hierarchy begins
	Why   string // why no cgroup can be made here; "" when one can
}

// v1Controllers are those that a group on v1 has, in the order in which a process joins them.
var v1Controllers = []string{"memory", "cpu", "cpuacct", "pids", "devices", "freezer"}

// v2Controllers are those that a group on v2 has.
var v2Controllers = []string{"cpu", "memory", "pids"}

// Discover looks at the cgroups of the calling process. A host without any is no error: its mode is None.
func Discover(h Host) (Tree, error) {
	t, err := discover(h)
	if err != nil {
		return Tree{}, fmt.Errorf("look at cgroups: %w", err)
	}
	return t, nil
}

func discover(h Host) (Tree, error) {
	text, err := h.text("/proc/self/cgroup")
	if errors.Is(err, os.ErrNotExist) {
		return Tree{Mode: None, NoDevices: noMount, host: h}, nil // a kernel without cgroups
	}
	if err != nil {
		return Tree{}, err
	}
	own, err := parseOwn(text)
	if err != nil {
		return Tree{}, err
	}
	text, err = h.text("/proc/self/mountinfo")
	if err != nil {
		return Tree{}, err
	}
	mounts, err := parseMounts(text)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{
		Mode: modeOf(h, own, mounts), Controllers: map[string]Controller{},
		Protects: h.capable(unix.CAP_SYS_RESOURCE), host: h,
	}
	switch t.Mode {
	case V2:
		t.unified(own[""], mounts)
	case V1, Hybrid:
		t.legacy(own, mounts)
		if at, ok := own[""]; ok && t.Mode == Hybrid {
			t.beside = findMount(at, mounts, func(m mount) bool { return m.unified }).Dir
		}
	case None:
		t.NoDevices = noMount
	}
	return t, nil
}

const noMount = "no cgroup file system is mounted"

// modeOf is V2 when the unified hierarchy has the memory controller, or there is nothing else.
func modeOf(h Host, own map[string]string, mounts []mount) Mode {
	legacy, unified := false, false
	for _, m := range mounts {
		if m.unified {
			unified = true
			if controllers, err := h.text(filepath.Join(m.point, "cgroup.controllers")); err == nil &&
				slices.Contains(strings.Fields(controllers), "memory") {
				return V2
			}
			continue
		}
		legacy = legacy || slices.ContainsFunc(v1Controllers, m.holds)
	}
	_, inUnified := own[""]
	switch {
	case legacy && unified:
		return Hybrid
	case legacy:
		return V1
	case unified && inUnified:
		return V2
	}
	return None
}

// findMount finds the mount at which the own cgroup of a controller is seen.
func findMount(own string, mounts []mount, holds func(mount) bool) Controller {
	why := "the controller is not mounted"
	for _, m := range mounts {
		if !holds(m) {
			continue
		}
		if dir, ok := m.folder(own); ok {
			return Controller{Dir: dir, Mount: m.point}
		}
		why = "the own cgroup " + own + " lies outside of what is mounted at " + m.point
	}
	return Controller{Why: why}
}

// legacy looks at each hierarchy of v1: a process is in a cgroup of its own in each.
func (t *Tree) legacy(own map[string]string, mounts []mount) {
	for _, name := range append(slices.Collect(maps.Keys(own)), v1Controllers...) {
		if _, done := t.Controllers[name]; done || name == "" {
			continue
		}
		at, ok := own[name]
		if !ok {
			t.Controllers[name] = Controller{Why: "the kernel has no such controller, or v2 has it"}
			continue
		}
		c := findMount(at, mounts, func(m mount) bool { return m.holds(name) })
		if c.Why == "" {
			c.Why = t.host.refusal(c.Dir)
		}
		t.Controllers[name] = c
	}
	memory := t.Controllers["memory"]
	t.Swap = memory.Dir != "" && t.host.exists(filepath.Join(memory.Dir, "memory.memsw.limit_in_bytes"))
	t.NoDevices = t.Controllers["devices"].Why
	if t.NoDevices == "" && !t.host.capable(unix.CAP_SYS_ADMIN) {
		t.NoDevices = "only CAP_SYS_ADMIN of the host may write a device list"
	}
}

// refusal is why no cgroup can be made in the folder dir; "" when one can.
func (h Host) refusal(dir string) string {
	switch err := h.writable(dir); {
	case errors.Is(err, syscall.EROFS):
		return dir + " is mounted read-only"
	case errors.Is(err, syscall.EACCES):
		return dir + " is not ours to write"
	case err != nil:
		return dir + ": " + err.Error()
	}
	return ""
}

// unified looks at the one cgroup of v2.
func (t *Tree) unified(own string, mounts []mount) {
	if filepath.Base(own) == leafName {
		own = filepath.Dir(own)
	}
	at := findMount(own, mounts, func(m mount) bool { return m.unified })
	t.Dir = at.Dir
	var available []string
	if at.Why == "" {
		t.Root = !t.host.exists(filepath.Join(t.Dir, "cgroup.type"))
		t.Delegated = !t.Root && t.host.delegated(t.Dir, own)
		at.Why = t.undelegated()
		text, err := t.host.text(filepath.Join(t.Dir, "cgroup.controllers"))
		if err != nil && at.Why == "" {
			at.Why = err.Error()
		}
		available = strings.Fields(text)
	}
	for _, name := range v2Controllers {
		c := at
		if c.Why == "" && !slices.Contains(available, name) {
			c.Why = "the controller is not delegated to " + t.Dir
		}
		t.Controllers[name] = c
	}
	t.look()
	t.NoDevices = at.Why
	if t.NoDevices == "" && !t.host.capable(unix.CAP_SYS_ADMIN) {
		// The kernel takes an ordinary user's cgroup without a filter, silently.
		t.NoDevices = "a device filter needs CAP_SYS_ADMIN of the host"
	}
}

// undelegated is why no cgroup with controllers can be made below Dir; "" when one can.
func (t *Tree) undelegated() string {
	h := t.host
	for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if why := h.refusal(filepath.Join(t.Dir, name)); why != "" {
			return why
		}
	}
	enabled, err := h.text(filepath.Join(t.Dir, "cgroup.subtree_control"))
	if err != nil {
		return err.Error()
	}
	if t.Root || t.Delegated || enabled != "" {
		return ""
	}
	strangers, err := h.foreignProcesses(t.Dir)
	switch {
	case err != nil:
		return err.Error()
	case len(strangers) > 0:
		return fmt.Sprintf("%s is not delegated to us and process %d is in it", t.Dir, strangers[0])
	}
	return ""
}
