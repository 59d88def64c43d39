package launcher

import (
	"strconv"

	"github.com/muster-agent/muster/shim/plan"
)

var kubernetesDeeds = map[Answer]deed{
	Done:      {"completionMode: Indexed", "the index is complete; the Job is when all are"},
	Again:     {"backoffLimit", "another pod for the index, counted up to the limit; then the JobSet starts anew"},
	Elsewhere: {"backoffLimit", "the same; a JobSet that starts anew is a new run"},
	Never:     {"podFailurePolicy: FailJob", "the Job fails, and the JobSet with it, without another pod"},
}

var kubernetesSurvival = plan.Survival{
	By:    "the kubelet, where restartPolicy is OnFailure or Always; with Never, which the job files have, another pod comes with the index alone",
	Keeps: []string{KeptIndex, KeptHost, KeptContainer, KeptWork, KeptLogs},
}

// kubernetes reads an indexed Job's variables. What a pod's annotations say (JobSet's `replicatedjob-name` and
// `restart-attempt`) is known where the pod template hands it down by the downward API.
func (f *finder) kubernetes() {
	a := &f.found.Allocation
	if uid := f.env["POD_UID"]; uid != "" { // a pod's containers follow each other
		f.found.Slot = "kubernetes/" + uid
		f.found.Origins["slot"] = "POD_UID"
	}
	if n, err := strconv.Atoi(f.env["RESTART_ATTEMPT"]); err == nil && n >= 0 {
		f.found.Attempt = n + 1
		f.found.Origins["attempt"] = "RESTART_ATTEMPT"
	}
	f.take(&a.ContainerID, "container_id", "POD_NAME", "HOSTNAME")
	f.take(&a.Host, "host", "POD_IP")
	f.take(&f.found.Component, "component", "REPLICATED_JOB_NAME")
	f.number(&f.found.Index, "index", "JOB_COMPLETION_INDEX")
}
