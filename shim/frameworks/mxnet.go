package frameworks

import (
	"strconv"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// mxnet speaks ps-lite (docs/env.md of its sources): parameter servers are servers, all that trains are
// workers, and the scheduler is a side process of the first trainer. Without servers there is no
// cluster.
//
// DMLC_WORKER_ID and DMLC_SERVER_ID are HBox's. ps-lite does not read them: its scheduler gives ranks
// in an order of its own, by address, so kv.rank may be another number. DMLC_RANK is never set here:
// ps-lite sets it, and a node that finds it set does not take the id that it is given (src/van.cc).
//
// DMLC_NODE_HOST is where a node listens. ps-lite binds it as it stands, so a name is of no use there:
// without the variable it takes the first interface that is not the loopback.
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

// psLite is what every node of a ps-lite cluster is told. Where nothing schedules, the root is left to
// the app's own variables.
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

// sideAt is where the side process of the first trainer listens.
func sideAt(workers []registry.Row, side string) (host, port string, ok bool) {
	if len(workers) == 0 || workers[0].Ports["side."+side] == 0 {
		return "", "", false
	}
	host, _ = split(workers[0].Addr)
	return host, strconv.Itoa(workers[0].Ports["side."+side]), true
}

// xflow is mxnet with a heap profile of each process, as HBox has it. Several in one container would write into one
// file: they have none.
func xflow(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = mxnet(p, r)
	if id, ok := env["DMLC_WORKER_ID"]; ok && processes(p) == 1 {
		env["HEAPPROFILE"] = "./W" + id
	} else if id, ok := env["DMLC_SERVER_ID"]; ok {
		env["HEAPPROFILE"] = "./S" + id
	}
	return env, files
}
