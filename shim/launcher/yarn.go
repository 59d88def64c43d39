package launcher

import (
	"path"
	"strings"
)

// yarn reads what a NodeManager sets (ApplicationConstants.Environment). It gives neither index nor
// ports nor limits: the index is claimed, ports come from the range.
func (f *finder) yarn() {
	a := &f.found.Allocation
	f.take(&a.ContainerID, "container_id", "CONTAINER_ID")
	f.take(&a.Host, "host", "NM_HOST")
	if id := applicationOf(a.ContainerID); id != "" {
		f.found.AppID, f.found.RunID = id, id
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
	parts := strings.Split(container, "_")
	if len(parts) > 1 && strings.HasPrefix(parts[1], "e") {
		parts = append(parts[:1:1], parts[2:]...)
	}
	if len(parts) != 5 || parts[0] != "container" || !digits(parts[1]) || !digits(parts[2]) {
		return ""
	}
	return "application_" + parts[1] + "_" + parts[2]
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// first is the first entry of a list.
func first(list, separator string) string {
	head, _, _ := strings.Cut(list, separator)
	return strings.TrimSpace(head)
}
