package launcher

import (
	"path"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// yarnDeeds: a service's framework asks for no exit code; the distributed shell does.
var yarnDeeds = map[Answer]deed{
	Done:      {"restart_policy ON_FAILURE", "the container is over; the application succeeds with its last"},
	Again:     {"-container_retry_error_codes", "the distributed shell starts it again in the same container; a service takes another container"},
	Elsewhere: {"-container_retry_error_codes", "the same; agents that are started after the verdict end with it at once"},
	Never:     {"", "the distributed shell counts the container as failed; a service tries it until its failures are used up, each ends with the verdict at once"},
}

var yarnSurvival = plan.Survival{
	By:    "the NodeManager, for the distributed shell; a service's containers are replaced by others",
	Keeps: []string{KeptHost, KeptContainer, KeptWork, KeptLogs},
}

// yarn reads what a NodeManager sets (ApplicationConstants.Environment). It gives neither index nor
// ports nor limits: the index is claimed, ports come from the range.
func (f *finder) yarn() {
	a := &f.found.Allocation
	f.take(&a.ContainerID, "container_id", "CONTAINER_ID")
	f.take(&a.Host, "host", "NM_HOST")
	if id := applicationOf(a.ContainerID); id != "" {
		f.found.AppID, f.found.RunID = id, id
		f.found.JobID, f.found.Attempt = id, attemptOf(a.ContainerID)
		f.found.Origins["job_id"], f.found.Origins["attempt"] = "CONTAINER_ID", "CONTAINER_ID"
		f.found.Origins["app_id"] = "CONTAINER_ID"
		f.found.Origins["run"] = "CONTAINER_ID"
	}
	f.found.LogDir = first(f.env["LOG_DIRS"], ",")
	if f.found.LogDir != "" {
		f.found.Origins["log_dir"] = "LOG_DIRS"
	}
	switch {
	case a.ContainerID != "" && path.Base(f.env["PWD"]) == a.ContainerID:
		f.take(&f.found.WorkDir, "work_dir", "PWD")
	case f.has("LOCAL_DIRS"):
		f.found.WorkDir = path.Join(first(f.env["LOCAL_DIRS"], ","), a.ContainerID)
		f.found.Origins["work_dir"] = "LOCAL_DIRS"
	}
	f.take(&a.User, "user", "USER")
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

// first is the first entry of a list.
func first(list, separator string) string {
	head, _, _ := strings.Cut(list, separator)
	return strings.TrimSpace(head)
}
