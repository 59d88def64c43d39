package plan

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/muster-agent/muster/appdef"
)

// AgentMemoryMB is the memory of the agent and its guard, in addition to the process. A job file asks its launcher for
// it; if the launcher's limit covers all of them, the plan leaves it free.
const AgentMemoryMB = 32

// leastMemoryMB is how much of the instance's own limit the creation of a container needs.
const leastMemoryMB = 16

// limits are those of the definition, within what the launcher granted.
func (b *builder) limits() Limits {
	l, e := b.component.Limits, b.req.Allocation.Envelope
	out := Limits{
		MemoryMB: l.MemoryMB, VCores: l.VCores, CPUHard: l.CPUHard, SwapMB: l.SwapMB, Pids: l.Pids, ShmMB: l.ShmMB,
		GPUs: l.GPUs, GPUType: l.GPUType, GPUMemoryMB: l.GPUMemory,
		StorageGB: l.StorageGB, HighMB: l.HighMB, Autoscale: l.Autoscale, AutoscaleAt: l.AutoscaleAt,
		RDMA: l.RDMA, Ulimits: maps.Clone(l.Ulimits),
	}
	out.MemoryMB = b.memory(out.MemoryMB, e)
	if out.VCores == appdef.Max {
		out.VCores = e.VCores
	}
	if e.VCores > 0 && out.VCores > e.VCores {
		b.problem(b.key("yarn.vcores"), strconv.Itoa(out.VCores)+" vcores", "at most "+strconv.Itoa(e.VCores),
			"that is what the launcher grants; ask it for more, or the app for less")
	}
	if out.ShmMB == 0 {
		out.ShmMB = out.MemoryMB / 2
	}
	return out
}

// memory is the limit in MB below the launcher's own, 0 for none. A larger request is refused; one that leaves no room
// for the agent is reduced.
func (b *builder) memory(asked int, e Envelope) int {
	where := b.key("yarn.memory")
	if asked > 0 && asked < leastMemoryMB {
		b.problem(where, strconv.Itoa(asked)+" MB", "at least "+strconv.Itoa(leastMemoryMB)+" MB",
			"no process starts in less")
		return asked
	}
	launcher := "the launcher's limit is " + strconv.Itoa(e.MemoryMB) + " MB"
	switch room := max(e.MemoryMB-AgentMemoryMB, 1); {
	case asked == appdef.Max && e.MemoryMB == 0 && noLauncher(b.req.Allocation.Launcher):
		return 0
	case asked == appdef.Max && e.MemoryMB == 0:
		b.warn(where, "max", "a number of MB", "the launcher's limit is unknown, so there is none")
		return 0
	case asked == appdef.Max:
		return room
	case e.MemoryMB > 0 && asked > e.MemoryMB:
		b.problem(where, strconv.Itoa(asked)+" MB", "at most "+strconv.Itoa(room)+" MB",
			launcher+" and "+strconv.Itoa(AgentMemoryMB)+" MB of it are the agent's; ask the launcher for more, or "+
				"the app for less")
		return room
	case e.MemoryMB > 0 && asked > room:
		b.warn(where, strconv.Itoa(asked)+" MB", "at most "+strconv.Itoa(room)+" MB",
			launcher+" and "+strconv.Itoa(AgentMemoryMB)+" MB of it are the agent's; that is the limit")
		return room
	case e.MemoryMB == 0 && b.req.MemoryMB > 0 && asked > b.req.MemoryMB:
		b.warn(where, strconv.Itoa(asked)+" MB", "at most "+strconv.Itoa(b.req.MemoryMB)+" MB",
			"this host has no more: the limit will never be reached, and the host runs out of memory first")
	}
	return asked
}

// noLauncher tells that a person starts the agents, who grants them all that the machine has.
func noLauncher(name string) bool { return name == "" || name == "shell" }

// Grown is the memory limit in MB of a start after so many ends out of memory: each adds the share of
// muster.memory.autoscale, rounded up, within the launcher's own limit (HBox's mem.autoscale). Where all restarts
// count, those that other agents saw are known by the gang's generation.
func Grown(l Limits, e Envelope, ends int, start StartFacts) int {
	if l.AutoscaleAt == appdef.AutoscaleRetry {
		ends = max(start.Generation, start.Attempt) - 1
	}
	if l.MemoryMB <= 0 || ends <= 0 {
		return l.MemoryMB
	}
	grown := l.MemoryMB + ends*int(math.Ceil(float64(l.MemoryMB)*l.Autoscale))
	if e.MemoryMB > 0 {
		grown = min(grown, max(e.MemoryMB-AgentMemoryMB, l.MemoryMB))
	}
	return grown
}

// engine names the chosen engine and the requested limits that it cannot enforce.
func (b *builder) engine(l Limits) Engine {
	asked := map[string]bool{
		"memory_mb": l.MemoryMB > 0, "vcores": l.VCores > 0, "cpu_hard": l.CPUHard, "pids": l.Pids > 0,
		"swap_mb": l.SwapMB > 0, "high_mb": l.HighMB > 0, "shm_mb": b.component.Limits.ShmMB > 0, "gpus": l.GPUs > 0,
		"gpu_memory_mb": l.GPUMemoryMB > 0, "ulimits": len(l.Ulimits) > 0,
	}
	e := Engine{
		Name: b.req.Engine.Name, Why: b.req.Engine.Why, Unenforced: []unenforced{}, IDs: b.req.Engine.IDs,
		Filter: b.req.Engine.Filter,
	}
	for _, limit := range slices.Sorted(maps.Keys(b.req.Engine.Cannot)) {
		if why := b.req.Engine.Cannot[limit]; asked[limit] {
			e.Unenforced = append(e.Unenforced, unenforced{Limit: limit, Why: why})
			b.warn(b.limitSpot(limit), limit+", which engine "+e.Name+" does not enforce", "an engine that does", why)
		}
	}
	return e
}

// limitSpot is where a limit was written.
func (b *builder) limitSpot(limit string) spot {
	for _, key := range keysOf()["/limits/"+limit] {
		if _, ok := keyPlace(b.app, b.position, key); ok {
			return b.key(key)
		}
	}
	return b.at()
}
