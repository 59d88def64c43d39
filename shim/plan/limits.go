package plan

import (
	"maps"
	"slices"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// agentMemoryMB is left to the agent and its guard where the launcher's limit is around them too.
const agentMemoryMB = 32

// limits are the definition's, within what the launcher granted.
func (b *builder) limits() Limits {
	l, e := b.component.Limits, b.req.Allocation.Envelope
	out := Limits{
		MemoryMB: l.MemoryMB, VCores: l.VCores, CPUHard: l.CPUHard, SwapMB: l.SwapMB, Pids: l.Pids, ShmMB: l.ShmMB,
		GPUs: l.GPUs, GPUType: l.GPUType, GPUMemoryMB: l.GPUMemory, Ulimits: maps.Clone(l.Ulimits),
	}
	where := b.key("yarn.memory")
	switch room := max(e.MemoryMB-agentMemoryMB, 1); {
	case out.MemoryMB == appdef.Max && e.MemoryMB == 0:
		out.MemoryMB = 0
		b.warn(where, "max", "a number of MB", "the launcher's limit is unknown, so there is none")
	case out.MemoryMB == appdef.Max:
		out.MemoryMB = room
	case e.MemoryMB > 0 && out.MemoryMB > room:
		b.warn(where, strconv.Itoa(out.MemoryMB)+" MB", "at most "+strconv.Itoa(room)+" MB",
			"the launcher's limit is "+strconv.Itoa(e.MemoryMB)+" MB and "+strconv.Itoa(agentMemoryMB)+" MB of it are the agent's; that is the limit")
		out.MemoryMB = room
	}
	if out.VCores == appdef.Max {
		out.VCores = e.VCores
	}
	if out.ShmMB == 0 {
		out.ShmMB = out.MemoryMB / 2
	}
	return out
}

// engine says what was chosen and which of the limits that were asked for it cannot hold.
func (b *builder) engine(l Limits) Engine {
	asked := map[string]bool{
		"memory_mb": l.MemoryMB > 0, "vcores": l.VCores > 0, "cpu_hard": l.CPUHard, "pids": l.Pids > 0,
		"swap_mb": l.SwapMB > 0, "shm_mb": b.component.Limits.ShmMB > 0, "gpus": l.GPUs > 0,
		"gpu_memory_mb": l.GPUMemoryMB > 0, "ulimits": len(l.Ulimits) > 0,
	}
	e := Engine{Name: b.req.Engine.Name, Why: b.req.Engine.Why, Unenforced: []Unenforced{}}
	for _, limit := range slices.Sorted(maps.Keys(b.req.Engine.Cannot)) {
		if why := b.req.Engine.Cannot[limit]; asked[limit] {
			e.Unenforced = append(e.Unenforced, Unenforced{Limit: limit, Why: why})
			b.warn(b.limitSpot(limit), limit+", which engine "+e.Name+" does not enforce", "an engine that does", why)
		}
	}
	return e
}

// limitSpot is where a limit was asked for.
func (b *builder) limitSpot(limit string) spot {
	for _, key := range keysOf()["/limits/"+limit] {
		if _, ok := keyPlace(b.app, b.position, key); ok {
			return b.key(key)
		}
	}
	return b.at()
}
