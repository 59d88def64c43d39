package frameworks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// horovodGloo tells Horovod's processes what its launcher tells them where Gloo connects them (create_run_env_vars and
// create_slot_env_vars in horovod/runner/gloo_run.py). A container is what Horovod calls a host, by its instance's
// name: processes of other containers share neither its GPUs nor its memory.
//
// Without a rendezvous Horovod takes a process to be alone: nothing is set while the first instance has none.
func horovodGloo(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = none()
	all := trainers(r)
	place, n := placeOf(all, p), processes(p)
	if place < 0 {
		return env, files
	}
	if len(all)*n > 1 {
		host, port, ok := sideAt(all, plan.SideRendezvous)
		if !ok {
			return env, files
		}
		env["HOROVOD_GLOO_RENDEZVOUS_ADDR"], env["HOROVOD_GLOO_RENDEZVOUS_PORT"] = host, port
	}
	set(env, map[string]int{
		"HOROVOD_RANK": place * n, "HOROVOD_SIZE": len(all) * n,
		"HOROVOD_LOCAL_RANK": 0, "HOROVOD_LOCAL_SIZE": n,
		"HOROVOD_CROSS_RANK": place, "HOROVOD_CROSS_SIZE": len(all),
	})
	env["HOROVOD_HOSTNAME"] = all[place].Instance.String()
	env["HOROVOD_CONTROLLER"] = "gloo"
	if _, own := p.Process.Env[cpuOperations]; !own { // it may be a build with another library
		env[cpuOperations] = "gloo"
	}
	return tell(env, rising(p, "HOROVOD_RANK", "HOROVOD_LOCAL_RANK")), files
}

// cpuOperations names the library that reduces what is not on a GPU.
const cpuOperations = "HOROVOD_CPU_OPERATIONS"

// rendezvous are the variables of the process at which Horovod's processes meet: their number, and the processes of
// each instance as horovodrun takes them. It forgets a group of processes when all of it have met.
func rendezvous(p plan.Plan, r registry.Roster) map[string]string {
	all, n := trainers(r), processes(p)
	hosts := make([]string, len(all))
	for i, row := range all {
		hosts[i] = fmt.Sprintf("%s:%d", row.Instance, n)
	}
	return map[string]string{
		"HOROVOD_SIZE":         strconv.Itoa(len(all) * n),
		"MUSTER_HOROVOD_HOSTS": strings.Join(hosts, ","),
	}
}
