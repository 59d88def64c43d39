package container

import (
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
	limit(r, s)
	if cgroups.IsCgroup2UnifiedMode() {
		limitV2(r, s.Limits, who)
	}
	return &cgroups.Cgroup{Path: s.Cgroup, Rootless: who.rootless, Resources: r}
}

// The period of a quota is the kernel's default, in microseconds; shares end at what it takes (sched-design-CFS).
const (
	cpuPeriod = 100_000
	maxShares = 262144
)

func limit(r *cgroups.Resources, s Spec) {
	l := s.Limits
	r.Memory = l.Memory
	if l.Memory > 0 && s.CountsSwap {
		r.MemorySwap = l.Memory + l.Swap
	}
	if l.Pids > 0 {
		r.PidsLimit = &l.Pids
	}
	if l.CPU > 0 {
		r.CpuShares = min(uint64(l.CPU)*1024, maxShares)
	}
	if l.Hard && l.CPU > 0 {
		r.CpuPeriod, r.CpuQuota = cpuPeriod, int64(l.CPU)*cpuPeriod
	}
}

func limitV2(r *cgroups.Resources, l cgroup.Limits, who identity) {
	r.CpuWeight, r.CpuShares = cgroups.ConvertCPUSharesToCgroupV2Value(r.CpuShares), 0
	r.Unified = map[string]string{}
	if l.High > 0 {
		r.Unified["memory.high"] = strconv.FormatInt(l.High, 10)
	}
	// Only a guard with an OOM score of -1000 is spared when all the others are killed.
	if l.Group && who.spared {
		r.Unified["memory.oom.group"] = "1"
	}
}
