package frameworks

import (
	"strconv"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// xgboost tells rabit's workers their tracker, a side process of the first worker. The tracker assigns the ranks;
// DMLC_TASK_ID identifies a worker that restarts.
func xgboost(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	at := placeOf(trainers(r), p)
	if at < 0 {
		return env, files
	}
	env["DMLC_ROLE"] = "worker"
	env["DMLC_TASK_ID"] = strconv.Itoa(at * processes(p))
	return tell(env, rabit(p, r), rising(p, "DMLC_TASK_ID")), files
}

// rabit are the variables of workers and tracker. Without a tracker of ours the app's own variables name it.
func rabit(p plan.Plan, r registry.Roster) map[string]string {
	workers := trainers(r)
	env := map[string]string{"DMLC_NUM_WORKER": strconv.Itoa(len(workers) * processes(p))}
	if host, port, ok := sideAt(workers, plan.SideTracker); ok {
		env["DMLC_TRACKER_URI"], env["DMLC_TRACKER_PORT"] = host, port
	}
	return env
}
