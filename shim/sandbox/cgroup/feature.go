package cgroup

import (
	"fmt"
	"maps"
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

// NoMemoryHigh is why a soft limit of memory is not held.
const NoMemoryHigh = "no memory.high here: it came with cgroup v2"

// Cannot says which limits no cgroup can hold here, and why, by their names in the plan: memory_mb, high_mb, swap_mb,
// vcores, cpu_hard, pids, gpus.
func (t Tree) Cannot() map[string]string {
	memory, cpu := t.why("memory"), t.why("cpu")
	cannot := map[string]string{
		"memory_mb": memory, "swap_mb": memory, "vcores": cpu, "cpu_hard": cpu, "pids": t.why("pids"),
		"gpus": t.NoDevices,
	}
	if memory == "" && !t.Swap {
		cannot["swap_mb"] = "the kernel does not count swap by cgroup"
	}
	if !t.has("memory.high") {
		cannot["high_mb"] = NoMemoryHigh
	}
	maps.DeleteFunc(cannot, func(_, why string) bool { return why == "" })
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
