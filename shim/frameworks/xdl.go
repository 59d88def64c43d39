package frameworks

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// xdl tells a task of X-DeepLearning what HBox does, and no more. The scheduler is a parameter server
// too many: the component of that name, else the last of them. The store (zfs) in which all others meet
// is at its address; the path in it is of the run and its generation, so that no gang finds what another
// has left.
func xdl(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	workers, ps := trainers(r), plan.ClusterOf(r).PS
	if len(ps) == 0 {
		return env, files
	}
	scheduler := len(ps) - 1
	if i := slices.IndexFunc(ps, func(row registry.Row) bool { return row.Component == hboxScheduler }); i >= 0 {
		scheduler = i
	}
	root := ps[scheduler]
	ps = slices.Delete(ps, scheduler, scheduler+1)
	env["ZK_ADDR"] = fmt.Sprintf("zfs://%s/%s-%d", root.Addr, runOf(p, r), r.Gen)
	worker, server := placeOf(workers, p), placeOf(ps, p)
	switch {
	case worker >= 0:
		env["TASK_NAME"] = "worker"
		env["TASK_INDEX"], env["TASK_NUM"] = strconv.Itoa(worker), strconv.Itoa(len(workers))
	case server >= 0:
		env["TASK_NAME"], env["TASK_INDEX"] = "ps", strconv.Itoa(server)
	case placeOf([]registry.Row{root}, p) >= 0:
		env["TASK_NAME"], env["TASK_INDEX"], env["PS_NUM"] = "scheduler", "0", strconv.Itoa(len(ps))
		env["PS_CPU_CORES"], env["PS_MEMORY_M"] = serverSize(p)
	default:
		return none()
	}
	return env, files
}

// serverSize are the cores and MiB of a parameter server: what an HBox submission says, else as much as
// the scheduler itself has.
func serverSize(p plan.Plan) (cores, memory string) {
	if p.HBox != nil && p.HBox.PSMemory > 0 {
		return strconv.Itoa(p.HBox.PSCPUs), strconv.Itoa(p.HBox.PSMemory)
	}
	return strconv.Itoa(p.Limits.VCores), strconv.Itoa(p.Limits.MemoryMB)
}
