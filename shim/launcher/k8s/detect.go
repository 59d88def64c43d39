package k8s

import (
	"strconv"

	"github.com/muster-agent/muster/shim/launcher"
)

// Agents is Kubernetes as its agents meet it.
var Agents = launcher.Launcher{
	Name:       "kubernetes",
	KillWindow: 30, // terminationGracePeriodSeconds
	Recognise:  launcher.By("KUBERNETES_SERVICE_HOST"),
	Read:       find, Actions: actions, Survival: survival,
	KeepsOutput: true,
}

// find reads an indexed Job's variables. What a pod's annotations say (JobSet's `replicatedjob-name` and
// `restart-attempt`) is known where the pod template hands it down by the downward API.
func find(f *launcher.Finder) {
	a := &f.Found.Allocation
	if uid := f.Env["POD_UID"]; uid != "" { // a pod's containers follow each other
		f.Found.Slot = "kubernetes/" + uid
		f.Found.Origins["slot"] = "POD_UID"
	}
	if n, err := strconv.Atoi(f.Env["RESTART_ATTEMPT"]); err == nil && n >= 0 {
		f.Found.Attempt = n + 1
		f.Found.Origins["attempt"] = "RESTART_ATTEMPT"
	}
	f.Take(&a.ContainerID, "container_id", "POD_NAME", "HOSTNAME")
	f.Take(&a.Host, "host", "POD_IP")
	f.Take(&f.Found.Volume, "volume", "POD_WORK_VOLUME")
	f.Take(&f.Found.Component, "component", "REPLICATED_JOB_NAME")
	f.Number(&f.Found.Index, "index", "JOB_COMPLETION_INDEX")
}
