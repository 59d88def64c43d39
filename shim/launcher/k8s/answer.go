package k8s

import (
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/plan"
)

var actions = map[launcher.Answer]launcher.Action{
	launcher.Done: {By: "completionMode: Indexed", Does: "the index is complete; the Job is when all are"},
	launcher.Again: {
		By:   "backoffLimit",
		Does: "another pod for the index, counted up to the limit; then the JobSet restarts",
	},
	launcher.Elsewhere: {By: "backoffLimit", Does: "the same; a JobSet that restarts is a new run"},
	launcher.Never: {
		By:   "podFailurePolicy: FailJob",
		Does: "the Job fails, and the JobSet with it, without another pod",
	},
}

var survival = plan.Survival{
	By: "the kubelet, where restartPolicy is OnFailure or Always; with Never, which the job files have, another " +
		"pod comes with the index alone",
	Keeps: []string{
		launcher.KeptIndex, launcher.KeptHost, launcher.KeptContainer, launcher.KeptWork,
		launcher.KeptLogs,
	},
}
