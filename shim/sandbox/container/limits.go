package container

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/cgroups"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
)

// cgroupOf is what libcontainer makes and fills before the first process runs anything of the container.
func cgroupOf(s Spec, who identity) *cgroups.Cgroup {
	r := &cgroups.Resources{Devices: deviceRules(s.Nodes, s.Limits.Devices)}
	if s.Cgroup == "" {
		// Rootless with no path means: take the one we are in when none can be made.
		return &cgroups.Cgroup{Name: s.id(), Rootless: true, Resources: r}
	}
	if cgroups.IsCgroup2UnifiedMode() {
		limitV2(r, s.Limits, who)
	} else {
		limitV1(r, s.Limits)
	}
	return &cgroups.Cgroup{Path: s.Cgroup, Rootless: who.rootless, Resources: r}
}

// cpuPeriod is the kernel's default, in microseconds.
const cpuPeriod = 100_000

func limit(r *cgroups.Resources, l cgroup.Limits) {
	r.Memory = l.Memory
	if l.Pids > 0 {
		r.PidsLimit = &l.Pids
	}
	if l.Hard && l.CPU > 0 {
		r.CpuPeriod, r.CpuQuota = cpuPeriod, int64(l.CPU)*cpuPeriod
	}
}

func limitV1(r *cgroups.Resources, l cgroup.Limits) {
	limit(r, l)
	if l.CPU > 0 {
		r.CpuShares = uint64(l.CPU) * 1024
	}
	// Swap is counted only by a kernel that was told so at its start (swapaccount=1).
	if l.Memory > 0 && countsSwap() {
		r.MemorySwap = l.Memory + l.Swap
	}
}

func countsSwap() bool {
	own, err := cgroups.GetOwnCgroupPath("memory")
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(own, "memory.memsw.usage_in_bytes"))
	return err == nil
}

func limitV2(r *cgroups.Resources, l cgroup.Limits, who identity) {
	limit(r, l)
	if l.CPU > 0 {
		r.CpuWeight = min(uint64(l.CPU)*100, 10000)
	}
	if l.Memory > 0 {
		r.MemorySwap = l.Memory + l.Swap
	}
	r.Unified = map[string]string{}
	if l.High > 0 {
		r.Unified["memory.high"] = strconv.FormatInt(l.High, 10)
	}
	// Only a guard with an OOM score of -1000 is spared when all the others are killed.
	if l.Group && who.spared {
		r.Unified["memory.oom.group"] = "1"
	}
}
