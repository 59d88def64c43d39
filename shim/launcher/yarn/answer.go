package yarn

import (
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
)

// actions: a service's framework asks for no exit code; the distributed shell does.
var actions = map[launcher.Answer]launcher.Action{
	launcher.Done: {
		By:   "restart_policy ON_FAILURE",
		Does: "the container is over; the application succeeds with its last",
	},
	launcher.Again: {
		By:   "-container_retry_error_codes",
		Does: "the distributed shell starts it again in the same container; a service takes another container",
	},
	launcher.Elsewhere: {
		By:   "-container_retry_error_codes",
		Does: "the same; agents that are started after the verdict end with it at once",
	},
	launcher.Never: {Does: "the distributed shell counts the container as failed; a service tries it until its " +
		"failures are used up, each ends with the verdict at once"},
}

var survival = plan.Survival{
	By:    "the NodeManager, for the distributed shell; a service's containers are replaced by others",
	Keeps: []string{launcher.KeptHost, launcher.KeptContainer, launcher.KeptWork, launcher.KeptLogs},
}
