package launcher

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// nomadDeeds: Nomad asks for no exit code. Whatever is not 0 is tried again, and an agent that is started after the verdict
// ends with it at once.
var nomadDeeds = map[Answer]deed{
	Done:      {"type = \"batch\"", "the allocation is complete"},
	Again:     {"restart", "the task starts again in its allocation"},
	Elsewhere: {"reschedule", "the same; when its attempts are used up, another allocation, on another host if there is one"},
	Never:     {"", "Nomad has no word for it: it tries all that, and each try ends with the verdict at once"},
}

var nomadSurvival = plan.Survival{
	By:    "the Nomad client, by the group's restart block",
	Keeps: []string{KeptIndex, KeptPorts, KeptHost, KeptContainer, KeptWork, KeptLogs},
}

// nomad reads a task's runtime environment. The group's name is the component; a port label names a
// granted port. The port on the host wins over the one inside: it is what the others can reach.
func (f *finder) nomad() {
	a := &f.found.Allocation
	f.nomadJob()
	f.take(&a.ContainerID, "container_id", "NOMAD_ALLOC_ID")
	if task := f.env["NOMAD_TASK_NAME"]; task != "" { // an allocation has one task of a name at a time
		f.found.Slot = "nomad/" + a.ContainerID + "/" + task
		f.found.Origins["slot"] = "NOMAD_ALLOC_ID"
	}
	f.take(&f.found.Component, "component", "NOMAD_GROUP_NAME")
	f.number(&f.found.Index, "index", "NOMAD_ALLOC_INDEX")
	f.take(&f.found.WorkDir, "work_dir", "NOMAD_TASK_DIR")
	if dir := f.env["NOMAD_ALLOC_DIR"]; dir != "" {
		f.found.LogDir = path.Join(dir, "logs")
		f.found.Origins["log_dir"] = "NOMAD_ALLOC_DIR"
	}
	f.number(&a.Envelope.MemoryMB, "envelope.memory_mb", "NOMAD_MEMORY_LIMIT")
	if n := countList(f.env["NOMAD_CPU_CORES"]); n > 0 {
		a.Envelope.VCores = n
		f.found.Origins["envelope.vcores"] = "NOMAD_CPU_CORES"
	}
	for _, name := range slices.Sorted(maps.Keys(f.env)) {
		f.nomadPort(name, "NOMAD_PORT_")
	}
	for _, name := range slices.Sorted(maps.Keys(f.env)) {
		f.nomadPort(name, "NOMAD_HOST_PORT_")
		if strings.HasPrefix(name, "NOMAD_HOST_IP_") && a.Host == "" {
			f.take(&a.Host, "host", name)
		}
	}
}

// nomadJob names the app by the job: its id, with the namespace where that is not the default one. What a dispatched or a
// periodic job starts has an id with a slash, JOB/dispatch-…; it is one life, so that its id is the run's as well. An id that
// is no name of ours says nothing.
func (f *finder) nomadJob() {
	f.take(&f.found.JobID, "job_id", "NOMAD_JOB_ID")
	name := strings.ReplaceAll(f.found.JobID, "/", "~")
	if ns := f.env["NOMAD_NAMESPACE"]; ns != "" && ns != "default" {
		name = ns + "~" + name
	}
	if f.found.JobID == "" || !ValidName(name) {
		return
	}
	f.found.AppID = name
	f.found.Origins["app_id"] = "NOMAD_JOB_ID"
	if parent := f.env["NOMAD_JOB_PARENT_ID"]; parent != "" && strings.HasPrefix(f.found.JobID, parent+"/") {
		f.found.RunID = name
		f.found.Origins["run"] = "NOMAD_JOB_ID"
	}
}

func (f *finder) nomadPort(name, prefix string) {
	label, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.Atoi(f.env[name])
	if !ok || err != nil || n < 1 || n > 65535 {
		return
	}
	f.found.Allocation.Ports[label] = n
	f.found.Origins["ports."+label] = name
}

// countList counts the members of a list such as `0-3,7`; 0 when it is empty or malformed.
func countList(list string) int {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(low)
		if err != nil {
			return 0
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(high); err != nil || to < from {
				return 0
			}
		}
		n += to - from + 1
	}
	return n
}
