package frameworks

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// pytorch tells each worker what torchrun would (torch.distributed's "Environment Variables", in
// docs/source/elastic/run.rst of its sources): a program that calls init_process_group with env://, or
// a library that looks for torchrun, finds its own. The group of torchrun's GROUP_* is the container,
// its role is what it calls everybody that has no other.
//
// master_addr and master_port in small letters and INIT_METHOD are HBox's DISTTORCH.
//
// TORCHELASTIC_RESTART_COUNT is how often the whole gang was formed anew, because it must be the same
// everywhere; a worker that is started again by itself cannot join a process group that others hold.
//
// The store of the first worker listens on the port of its address. Nobody is told anything while it
// has none, nor are parameter servers, evaluators and services, which have no rank.
func pytorch(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	all := trainers(r)
	group := placeOf(all, p)
	if group < 0 {
		return env, files
	}
	host, port := split(all[0].Addr)
	if port == "" {
		return env, files
	}
	n := processes(p)
	set(env, map[string]int{
		"RANK": group * n, "WORLD_SIZE": len(all) * n,
		"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": n,
		"GROUP_RANK": group, "GROUP_WORLD_SIZE": len(all),
		"ROLE_RANK": group * n, "ROLE_WORLD_SIZE": len(all) * n,
		"TORCHELASTIC_RESTART_COUNT": max(r.Gen-1, 0), "TORCHELASTIC_MAX_RESTARTS": p.Restart.Budget,
	})
	env = tell(env, map[string]string{
		"ROLE_NAME":   "default",
		"MASTER_ADDR": host, "MASTER_PORT": port,
		"master_addr": host, "master_port": port,
		"INIT_METHOD":                  "tcp://" + all[0].Addr,
		"TORCHELASTIC_RUN_ID":          runOf(p, r),
		"TORCHELASTIC_USE_AGENT_STORE": "False", // the first worker makes the store itself
	}, rising(p, "RANK", "LOCAL_RANK", "ROLE_RANK"))
	return env, files
}

// runOf names the run, as the roster does, or the app.
func runOf(p plan.Plan, r registry.Roster) string {
	if r.Run != "" {
		return r.Run
	}
	return p.App.ID
}
