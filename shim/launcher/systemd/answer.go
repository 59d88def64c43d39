package systemd

import (
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
)

var actions = map[launcher.Answer]launcher.Action{
	launcher.Done: {
		By:   "SuccessExitStatus",
		Does: "the unit is inactive; 130 and 143 are as good, they end a stop",
	},
	launcher.Again:     {By: "RestartForceExitStatus", Does: "the unit starts again, on this host"},
	launcher.Elsewhere: {By: "RestartForceExitStatus", Does: "the same: systemd knows no other host"},
	launcher.Never:     {By: "RestartPreventExitStatus", Does: "the unit is failed"},
}

var survival = plan.Survival{
	By:    "systemd, by Restart=",
	Keeps: []string{launcher.KeptIndex, launcher.KeptHost, launcher.KeptWork, launcher.KeptLogs},
}
