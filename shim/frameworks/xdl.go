package frameworks

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// xdl sets for a task of X-DeepLearning what HBox does. The scheduler is one of the parameter servers: the component of
// that name, else the last of them. All others meet in the store (zfs) at its address; the path in the store contains
// the run and its generation, so that no gang finds the values of another.
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

// serverSize are the cores and MiB of a parameter server: from an HBox submission, else those of the scheduler itself.
func serverSize(p plan.Plan) (cores, memory string) {
	if p.HBox != nil && p.HBox.PSMemory > 0 {
		return strconv.Itoa(p.HBox.PSCPUs), strconv.Itoa(p.HBox.PSMemory)
	}
	return strconv.Itoa(p.Limits.VCores), strconv.Itoa(p.Limits.MemoryMB)
}
