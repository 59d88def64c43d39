package frameworks

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// pytorch sets for each worker what torchrun would (torch.distributed's "Environment Variables", in
// docs/source/elastic/run.rst of its sources), for programs that call init_process_group with env:// and libraries that
// look for torchrun. The group of torchrun's GROUP_* is the container; the role is torchrun's default.
//
// master_addr and master_port in small letters and INIT_METHOD are those of HBox's DISTTORCH.
//
// TORCHELASTIC_RESTART_COUNT is the number of full restarts, because it must be the same everywhere; a worker that
// restarts alone cannot join a process group that others hold.
//
// The store of the first worker listens on the port of its address. Without that address no variables are set.
// Parameter servers, evaluators and services have no rank and get none.
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

// runOf names the run by the roster, or else the app.
func runOf(p plan.Plan, r registry.Roster) string {
	if r.Run != "" {
		return r.Run
	}
	return p.App.ID
}
