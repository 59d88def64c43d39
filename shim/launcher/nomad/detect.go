package nomad

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/launcher"
)

// Agents is Nomad as its agents meet it.
var Agents = launcher.Launcher{
	Name:       "nomad",
	KillWindow: 5, // kill_timeout
	Recognise:  launcher.By("NOMAD_ALLOC_ID"),
	Read:       find, Actions: actions, Survival: survival,
	KeepsOutput: true,
}

// find reads a task's runtime environment. The group's name is the component; a port label names a
// granted port. The port on the host wins over the one inside: it is what the others can reach.
func find(f *launcher.Finder) {
	a := &f.Found.Allocation
	nameApp(f)
	f.Take(&a.ContainerID, "container_id", "NOMAD_ALLOC_ID")
	if task := f.Env["NOMAD_TASK_NAME"]; task != "" { // an allocation has one task of a name at a time
		f.Found.Slot = "nomad/" + a.ContainerID + "/" + task
		f.Found.Origins["slot"] = "NOMAD_ALLOC_ID"
	}
	f.Take(&f.Found.Component, "component", "NOMAD_GROUP_NAME")
	f.Number(&f.Found.Index, "index", "NOMAD_ALLOC_INDEX")
	f.Take(&f.Found.WorkDir, "work_dir", "NOMAD_TASK_DIR")
	if dir := f.Env["NOMAD_ALLOC_DIR"]; dir != "" {
		f.Found.LogDir = path.Join(dir, "logs")
		f.Found.Origins["log_dir"] = "NOMAD_ALLOC_DIR"
	}
	f.Number(&a.Envelope.MemoryMB, "envelope.memory_mb", "NOMAD_MEMORY_LIMIT")
	if n := countList(f.Env["NOMAD_CPU_CORES"]); n > 0 {
		a.Envelope.VCores = n
		f.Found.Origins["envelope.vcores"] = "NOMAD_CPU_CORES"
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		takePort(f, name, "NOMAD_PORT_")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		takePort(f, name, "NOMAD_HOST_PORT_")
		if strings.HasPrefix(name, "NOMAD_HOST_IP_") && a.Host == "" {
			f.Take(&a.Host, "host", name)
		}
	}
}

// nameApp names the app by the job: its id, with the namespace where that is not the default one. What a dispatched
// or a periodic job starts has an id with a slash, JOB/dispatch-…; it is one life, so that its id is the run's as
// well. An id that is no name of ours says nothing.
func nameApp(f *launcher.Finder) {
	f.Take(&f.Found.JobID, "job_id", "NOMAD_JOB_ID")
	name := strings.ReplaceAll(f.Found.JobID, "/", "~")
	if ns := f.Env["NOMAD_NAMESPACE"]; ns != "" && ns != "default" {
		name = ns + "~" + name
	}
	if f.Found.JobID == "" || !appdef.ValidName(name) {
		return
	}
	f.Found.AppID = name
	f.Found.Origins["app_id"] = "NOMAD_JOB_ID"
	if parent := f.Env["NOMAD_JOB_PARENT_ID"]; parent != "" && strings.HasPrefix(f.Found.JobID, parent+"/") {
		f.Found.RunID = name
		f.Found.Origins["run"] = "NOMAD_JOB_ID"
	}
}

func takePort(f *launcher.Finder, name, prefix string) {
	label, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.Atoi(f.Env[name])
	if !ok || err != nil || n < 1 || n > 65535 {
		return
	}
	f.Found.Allocation.Ports[label] = n
	f.Found.Origins["ports."+label] = name
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
