package yarn

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/launcher"
)

// name is how plans and records call YARN.
const name launcher.Name = "yarn"

// Agents is YARN as its agents meet it.
var Agents = launcher.Launcher{
	Name:       name,
	KillWindow: 0.25, // yarn.nodemanager.sleep-delay-before-sigkill.ms, to the process group
	Recognise: func(f *launcher.Finder) string {
		if f.Has("CONTAINER_ID") && f.Has("NM_HOST") {
			return "CONTAINER_ID"
		}
		return ""
	},
	FlatLogs: true, // its log aggregation
	Read:     find, Actions: actions, Survival: survival,
}

// find reads what a NodeManager sets (ApplicationConstants.Environment). It gives neither index nor
// ports nor limits: the index is claimed, ports come from the range.
func find(f *launcher.Finder) {
	a := &f.Found.Allocation
	f.Take(&a.ContainerID, "container_id", "CONTAINER_ID")
	f.Take(&a.Host, "host", "NM_HOST")
	if id := applicationOf(a.ContainerID); id != "" {
		f.Found.AppID, f.Found.RunID = id, id
		f.Found.JobID, f.Found.Attempt = id, attemptOf(a.ContainerID)
		f.Found.Origins["job_id"], f.Found.Origins["attempt"] = "CONTAINER_ID", "CONTAINER_ID"
		f.Found.Origins["app_id"] = "CONTAINER_ID"
		f.Found.Origins["run"] = "CONTAINER_ID"
	}
	f.Found.LogDir = launcher.First(f.Env["LOG_DIRS"], ",")
	if f.Found.LogDir != "" {
		f.Found.Origins["log_dir"] = "LOG_DIRS"
	}
	switch {
	case a.ContainerID != "" && path.Base(f.Env["PWD"]) == a.ContainerID:
		f.Take(&f.Found.WorkDir, "work_dir", "PWD")
	case f.Has("LOCAL_DIRS"):
		f.Found.WorkDir = path.Join(launcher.First(f.Env["LOCAL_DIRS"], ","), a.ContainerID)
		f.Found.Origins["work_dir"] = "LOCAL_DIRS"
	}
	f.Take(&a.User, "user", "USER")
	takeGPUs(f)
}

// takeGPUs reads which GPUs the NodeManager granted. It names them to containers of Docker alone
// (NVIDIA_VISIBLE_DEVICES); to others LinuxContainerExecutor closes the GPUs that it did not grant, by device rules of
// the container's cgroup. Where none is closed, all of the host were granted, or the NodeManager only counts them.
func takeGPUs(f *launcher.Finder) {
	var open []string
	for node, ours := range f.Facts.GPUs {
		if ours {
			open = append(open, node)
		}
	}
	if len(open) == 0 || len(open) == len(f.Facts.GPUs) {
		return
	}
	slices.Sort(open)
	f.Found.Allocation.Devices = open
	f.Found.Origins["devices"] = "device rules of the container's cgroup"
}

// applicationOf gives the application id in a container id, which is
// `container[_eEPOCH]_TIMESTAMP_APP_ATTEMPT_CONTAINER`; empty for anything else.
func applicationOf(container string) string {
	parts := containerParts(container)
	if parts == nil {
		return ""
	}
	return "application_" + parts[0] + "_" + parts[1]
}

// attemptOf is the application's attempt that a container belongs to; 0 for what is no container id.
func attemptOf(container string) int {
	parts := containerParts(container)
	if parts == nil {
		return 0
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil {
		return 0
	}
	return n
}

// containerParts are timestamp, application, attempt and container; nil for what is no container id.
func containerParts(container string) []string {
	parts := strings.Split(container, "_")
	if len(parts) > 1 && strings.HasPrefix(parts[1], "e") {
		parts = append(parts[:1:1], parts[2:]...)
	}
	if len(parts) != 5 || parts[0] != "container" || !digits(parts[1]) || !digits(parts[2]) {
		return nil
	}
	return parts[1:]
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
