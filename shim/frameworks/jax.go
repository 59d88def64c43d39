package frameworks

import (
	"strconv"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// jax adds what jax.distributed.initialize needs: the address on which the first process serves, the number of
// processes, and the number of this one. JAX itself reads JAX_COORDINATOR_ADDRESS and JAX_LOCAL_DEVICE_IDS
// (jax/_src/distributed.py); the program passes the two numbers on. Names without JAX_ in some examples are those of
// their authors: the app sets them.
//
// Several processes in a container use one device each, as they are numbered within it.
func jax(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	all := trainers(r)
	place := placeOf(all, p)
	if place < 0 {
		return env, files
	}
	if _, port := split(all[0].Addr); port == "" {
		return env, files
	}
	n := processes(p)
	env["JAX_COORDINATOR_ADDRESS"] = all[0].Addr
	env["JAX_NUM_PROCESSES"] = strconv.Itoa(len(all) * n)
	env["JAX_PROCESS_ID"] = strconv.Itoa(place * n)
	names := []string{"JAX_PROCESS_ID"}
	if n > 1 && p.Limits.GPUs > 0 {
		env["JAX_LOCAL_DEVICE_IDS"] = "0"
		names = append(names, "JAX_LOCAL_DEVICE_IDS")
	}
	return tell(env, pastProxy(p.Process, all), rising(p, names...)), files
}
