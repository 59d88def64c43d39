package frameworks

import (
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// horovod is mpi with the transports that Horovod's own launcher chooses (horovod/runner/mpi_run.py), as in HBox. Its
// processes read their ranks from the variables of mpirun; HOROVOD_* settings of the definition reach them unchanged.
func horovod(p plan.Plan, r registry.Roster) (env, files map[string]string) {
	env, files = mpi(p, r)
	if len(env) == 0 {
		return env, files
	}
	without := "^openib"
	if env["OMPI_MCA_btl"] != "" { // mpi excludes one transport
		without += "," + strings.TrimPrefix(env["OMPI_MCA_btl"], "^")
	}
	for name, value := range map[string]string{"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": without} {
		if _, own := p.Process.Env[name]; !own {
			env[name] = value
		}
	}
	return env, files
}
