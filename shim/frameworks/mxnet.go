package frameworks

import (
	"strconv"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// mxnet sets up ps-lite (docs/env.md of its sources): parameter servers are servers, chiefs and workers are workers,
// and the scheduler is a side process of the first of these. Without servers there is no cluster.
//
// DMLC_WORKER_ID and DMLC_SERVER_ID are HBox's. ps-lite does not read them: its scheduler assigns ranks in its own
// order, by address, so kv.rank may differ. DMLC_RANK is never set here: ps-lite sets it, and a node that finds it set
// ignores the id that it is given (src/van.cc).
//
// DMLC_NODE_HOST is the address on which a node listens. ps-lite binds it as it stands, so it cannot be a name: without
// the variable ps-lite takes the first interface that is not the loopback.
func mxnet(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	workers, ps := trainers(r), servers(r)
	if len(ps) == 0 {
		return env, files
	}
	var own registry.Row
	n := processes(p)
	more := map[string]string{}
	if at := placeOf(workers, p); at >= 0 {
		own, env["DMLC_ROLE"], env["DMLC_WORKER_ID"] = workers[at], "worker", strconv.Itoa(at*n)
		more = rising(p, "DMLC_WORKER_ID")
	} else if at = placeOf(ps, p); at >= 0 {
		own, env["DMLC_ROLE"], env["DMLC_SERVER_ID"] = ps[at], "server", strconv.Itoa(at)
	} else {
		return env, files
	}
	if host, _ := split(own.Addr); numeric(host) {
		env["DMLC_NODE_HOST"] = host
	}
	return tell(env, psLite(p, r), more), files
}

// psLite are the variables of every node of a ps-lite cluster. Without a scheduler of ours the app's own variables name
// the root.
func psLite(p plan.Plan, r registry.Roster) map[string]string {
	workers := trainers(r)
	env := map[string]string{
		"DMLC_NUM_WORKER": strconv.Itoa(len(workers) * processes(p)),
		"DMLC_NUM_SERVER": strconv.Itoa(len(servers(r))),
	}
	if host, port, ok := sideAt(workers, plan.SideScheduler); ok {
		env["DMLC_PS_ROOT_URI"], env["DMLC_PS_ROOT_PORT"] = host, port
	}
	return env
}

// sideAt is the address of the side process of the first trainer.
func sideAt(workers []registry.Row, side string) (host, port string, ok bool) {
	if len(workers) == 0 || workers[0].Ports["side."+side] == 0 {
		return "", "", false
	}
	host, _ = split(workers[0].Addr)
	return host, strconv.Itoa(workers[0].Ports["side."+side]), true
}

// xflow is mxnet with a heap profile of each process, as in HBox. Several processes in one container would write into
// one file, so they get none.
func xflow(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = mxnet(p, r)
	if id, ok := env["DMLC_WORKER_ID"]; ok && processes(p) == 1 {
		env["HEAPPROFILE"] = "./W" + id
	} else if id, ok := env["DMLC_SERVER_ID"]; ok {
		env["HEAPPROFILE"] = "./S" + id
	}
	return env, files
}
