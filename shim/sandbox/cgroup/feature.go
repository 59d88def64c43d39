package cgroup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// features of v2 that v1 lacks, with the file that shows each in a cgroup and the kernel that brought it.
var features = []struct {
	name         string
	major, minor int
	memory       bool // a file of the memory controller
}{
	{"cgroup.kill", 5, 14, false},
	{"memory.high", 4, 5, true},
	{"memory.oom.group", 4, 19, true},
	{"memory.peak", 5, 19, true},
}

// look notes what the kernel of a v2 tree can do. The root's folder has none of the files that tell.
func (t *Tree) look() {
	if t.Dir == "" {
		return
	}
	release, _ := t.host.text("/proc/sys/kernel/osrelease")
	memory := t.host.exists(filepath.Join(t.Dir, "memory.max"))
	for _, f := range features {
		has := t.host.exists(filepath.Join(t.Dir, f.name))
		if t.Root || f.memory && !memory {
			has = atLeast(release, f.major, f.minor)
		}
		if has {
			t.Features = append(t.Features, f.name)
		}
	}
	t.Swap = t.host.exists(filepath.Join(t.Dir, "memory.swap.max"))
	if t.Root {
		cmdline, _ := t.host.text("/proc/cmdline")
		t.Swap = t.host.exists("/proc/swaps") && !slices.Contains(strings.Fields(cmdline), "swapaccount=0")
	}
}

// atLeast compares a kernel release such as 6.1.0-18-amd64.
func atLeast(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

func (t Tree) has(feature string) bool { return slices.Contains(t.Features, feature) }

// Missing names what cgroup v2 has and this tree lacks, sorted: nil on v2 with a kernel from 5.19 on. Without
// cgroup.kill a group is frozen, killed and thawed; without memory.oom.group the kernel kills one process and the
// guard ends the rest; memory.high has no substitute; v1 has a peak of its own.
func (t Tree) Missing() []string {
	var missing []string
	for _, f := range features {
		if !t.has(f.name) {
			missing = append(missing, f.name)
		}
	}
	return missing
}

// Cannot says which of the limits that l asks for no cgroup can enforce here, and why, by their names in the plan:
// memory_mb, swap_mb, vcores, cpu_hard, pids, gpus.
func (t Tree) Cannot(l Limits) map[string]string {
	cannot := map[string]string{}
	note := func(asked bool, limit, why string) {
		if asked && why != "" {
			cannot[limit] = why
		}
	}
	memory, cpu := t.why("memory"), t.why("cpu")
	swap := memory
	if swap == "" && !t.Swap {
		swap = "the kernel does not count swap by cgroup"
	}
	note(l.Memory > 0, "memory_mb", memory)
	note(l.Memory > 0 || l.Swap > 0, "swap_mb", swap)
	note(l.CPU > 0, "vcores", cpu)
	note(l.CPU > 0 && l.Hard, "cpu_hard", cpu)
	note(l.Pids > 0, "pids", t.why("pids"))
	note(l.Devices != nil, "gpus", t.NoDevices)
	return cannot
}

func (t Tree) why(controller string) string {
	c, ok := t.Controllers[controller]
	if !ok {
		return noMount
	}
	if c.Why != "" {
		return controller + ": " + c.Why
	}
	return ""
}

// Path is where the cgroup of an instance lies: a folder for each controller, on v2 one folder under "".
// Controllers in which no cgroup can be made are left out.
func (t Tree) Path(app, instance string) map[string]string {
	below := filepath.Join("muster", app, instance)
	if t.Mode == V2 {
		return map[string]string{"": filepath.Join(t.Dir, below)}
	}
	paths := map[string]string{}
	for name, c := range t.Controllers {
		if c.Why == "" {
			paths[name] = filepath.Join(c.Dir, below)
		}
	}
	return paths
}
