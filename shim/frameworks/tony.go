package frameworks

import (
	"maps"
	"strconv"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// The task types that TonY knows by name, besides those of TensorFlow.
const (
	tonyBoard     = "tensorboard" // the sidecar: in CLUSTER_SPEC and in no TF_CONFIG
	tonyScheduler = "scheduler"   // ps-lite's root is a task of its own
)

// tony sets what TonY's task executor does, whatever framework its application has: each of its runtimes sets a part of
// it (TaskExecutor, TFRuntime, PyTorchRuntime, MXNetRuntime of its sources). A task type is a component, by its name.
//
// TonY counts its tracked tasks: all but parameter servers and the board. RANK and WORLD are the index within the type
// and that number, so they are ranks in a job whose tracked tasks are all workers.
func tony(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	tracked := 0
	for _, row := range r.Rows {
		if row.Role != "ps" && row.Role != "service" {
			tracked++
		}
	}
	index, count := strconv.Itoa(p.Who.Index), strconv.Itoa(tracked)
	maps.Copy(env, map[string]string{
		"JOB_NAME": p.Who.Component, "TASK_INDEX": index, "TASK_NUM": count,
		"JOB_ID": runOf(p, r), "DISTRIBUTED_MODE": "GANG",
		"SESSION_ID": strconv.Itoa(max(r.Gen-1, 0)), // TonY counts the gangs that it has formed
	})
	board := p.Who.Component == tonyBoard
	spec := tonySpec(r)
	if chief := tonyChief(p, spec); chief || board {
		if chief {
			env["IS_CHIEF"] = "true"
		}
		maps.Copy(env, tonyBoardPort(p, r, board))
	}
	if p.Who.Role == "service" {
		return env, files
	}
	env["CLUSTER_SPEC"] = encode(spec)
	env["TF_CONFIG"] = encode(tfConfig{
		Cluster: tonyCluster(spec, p.Who), Task: tfTask{Type: p.Who.Component, Index: p.Who.Index},
	})
	if workers := spec["worker"]; len(workers) > 0 {
		env["INIT_METHOD"], env["RANK"], env["WORLD"] = "tcp://"+workers[0], index, count
	}
	if root := spec[tonyScheduler]; len(root) > 0 {
		host, port := split(root[0])
		maps.Copy(env, map[string]string{
			"DMLC_ROLE": p.Who.Component, "DMLC_PS_ROOT_URI": host, "DMLC_PS_ROOT_PORT": port, "DMLC_LOCAL": "0",
		})
		set(env, map[string]int{"DMLC_NUM_SERVER": len(spec["server"]), "DMLC_NUM_WORKER": len(spec["worker"])})
	}
	return env, files
}

// tonySpec is the cluster: the addresses of each type by index. A type without addresses is in nobody's: a
// service's, since any other type without one is refused (appdef).
func tonySpec(r registry.Roster) map[string][]string {
	spec, without := map[string][]string{}, map[string]bool{}
	for _, row := range r.Rows {
		if _, port := split(row.Addr); port == "" {
			without[row.Component] = true
		}
		spec[row.Component] = append(spec[row.Component], row.Addr)
	}
	maps.DeleteFunc(spec, func(component string, _ []string) bool { return without[component] })
	return spec
}

// tonyCluster is the cluster of TF_CONFIG: without the board, and without evaluators, but in their own.
func tonyCluster(spec map[string][]string, who plan.Who) map[string][]string {
	cluster := maps.Clone(spec)
	delete(cluster, tonyBoard)
	if who.Component != "evaluator" {
		delete(cluster, "evaluator")
	}
	return cluster
}

// tonyChief tells the tasks of the type chief, and without such a type the first worker.
func tonyChief(p plan.Plan, spec map[string][]string) bool {
	_, chiefs := spec["chief"]
	return p.Who.Component == "chief" || !chiefs && p.Who.Component == "worker" && p.Who.Index == 0
}

// tonyBoardPort is TB_PORT: the port of a side process called tensorboard, or of the board's own address.
func tonyBoardPort(p plan.Plan, r registry.Roster, board bool) map[string]string {
	i := placeOf(r.Rows, p)
	if i < 0 {
		return nil
	}
	if port := r.Rows[i].Ports["side."+tonyBoard]; port != 0 {
		return map[string]string{"TB_PORT": strconv.Itoa(port)}
	}
	if _, port := split(r.Rows[i].Addr); board && port != "" {
		return map[string]string{"TB_PORT": port}
	}
	return nil
}
