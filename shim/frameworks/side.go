package frameworks

import (
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// SideEnv are the variables of a side process besides those of the main process: the roster's part of the scheduler's,
// the tracker's and the rendezvous's variables. It is empty for any other side process.
func SideEnv(p plan.Plan, r registry.Roster, side string) map[string]string {
	switch side {
	case plan.SideScheduler:
		return scheduler(p, r)
	case plan.SideTracker:
		return rabit(p, r)
	case plan.SideRendezvous:
		return rendezvous(p, r)
	}
	return map[string]string{}
}

// scheduler is the node that all others of a ps-lite cluster dial. It binds the root's address, which must not be a
// name; with the variable of Kubernetes it binds every address (src/zmq_van.h of ps-lite).
func scheduler(p plan.Plan, r registry.Roster) map[string]string {
	env := tell(psLite(p, r), map[string]string{"DMLC_ROLE": "scheduler"})
	if root, ok := env["DMLC_PS_ROOT_URI"]; ok && !numeric(root) {
		env["DMLC_USE_KUBERNETES"] = "1"
	}
	return env
}
