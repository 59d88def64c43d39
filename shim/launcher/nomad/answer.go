package nomad

import (
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
)

// actions: Nomad asks for no exit code. Whatever is not 0 is tried again, and an agent that is started after the
// verdict ends with it at once.
var actions = map[launcher.Answer]launcher.Action{
	launcher.Done:  {By: "type = \"batch\"", Does: "the allocation is complete"},
	launcher.Again: {By: "restart", Does: "the task starts again in its allocation"},
	launcher.Elsewhere: {
		By:   "reschedule",
		Does: "the same; when its attempts are used up, another allocation, on another host if there is one",
	},
	launcher.Never: {Does: "Nomad has no word for it: it tries all that, and each try ends with the verdict at " +
		"once"},
}

var survival = plan.Survival{
	By: "the Nomad client, by the group's restart block",
	Keeps: []string{
		launcher.KeptIndex, launcher.KeptPorts, launcher.KeptHost, launcher.KeptContainer,
		launcher.KeptWork, launcher.KeptLogs,
	},
}
