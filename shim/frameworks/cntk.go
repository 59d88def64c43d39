package frameworks

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// cntk is mpi: its processes find each other by MPI and need nothing else (parallelTrain=true, or cntk.distributed in
// Python).
func cntk(p plan.Plan, r registry.Roster) (env, files map[string]string) { return mpi(p, r) }
