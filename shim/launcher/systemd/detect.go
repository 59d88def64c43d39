package systemd

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/launcher"
)

// Agents is Systemd as its agents meet it.
var Agents = launcher.Launcher{
	Name:       "systemd",
	KillWindow: 90, // DefaultTimeoutStopSec
	Recognise: func(f *launcher.Finder) string {
		if f.Has("INVOCATION_ID") && !inScope(f) {
			return "INVOCATION_ID"
		}
		return ""
	},
	Read: find, Actions: actions, Survival: survival,
	KeepsOutput: true, // the journal
}

// find reads a service's variables (systemd.exec(5)) and, for a unit `muster@worker-3.service`,
// component and index from the unit's name.
func find(f *launcher.Finder) {
	a := &f.Found.Allocation
	f.Take(&a.ContainerID, "container_id", "INVOCATION_ID")
	f.Found.WorkDir = launcher.First(f.Env["STATE_DIRECTORY"], ":")
	if f.Found.WorkDir != "" {
		f.Found.Origins["work_dir"] = "STATE_DIRECTORY"
	}
	f.Found.LogDir = launcher.First(f.Env["LOGS_DIRECTORY"], ":")
	if f.Found.LogDir != "" {
		f.Found.Origins["log_dir"] = "LOGS_DIRECTORY"
	}
	unit := unitOf(f.Facts.Cgroup)
	if unit != "" {
		f.Found.JobID = unit
		f.Found.Origins["job_id"] = "/proc/self/cgroup"
	}
	if unit != "" && f.Facts.Machine != "" { // a unit's next process starts when the last one's control group is empty
		f.Found.Slot = "systemd/" + f.Facts.Machine + "/" + unit
		f.Found.Origins["slot"] = "/proc/self/cgroup"
	}
	if component, index, ok := unitInstance(unit); ok {
		f.Found.Component, f.Found.Index = component, index
		f.Found.Origins["component"] = "/proc/self/cgroup"
		f.Found.Origins["index"] = "/proc/self/cgroup"
	}
}

// inScope tells whether the innermost unit around us is a scope: a login session or a terminal
// that a desktop opened. INVOCATION_ID is then only inherited from the user's service manager.
func inScope(f *launcher.Finder) bool {
	return strings.HasSuffix(unitOf(f.Facts.Cgroup), ".scope")
}

// unitOf is the innermost service or scope in the text of /proc/self/cgroup; empty if there is
// none. Lines are `HIERARCHY:CONTROLLERS:PATH`; systemd's own is `0::` or `name=systemd`.
func unitOf(cgroup string) string {
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || (parts[1] != "" && parts[1] != "name=systemd") {
			continue
		}
		unit := ""
		for name := range strings.SplitSeq(parts[2], "/") {
			if strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope") {
				unit = name
			}
		}
		if unit != "" {
			return unit
		}
	}
	return ""
}

// unitInstance splits `muster@worker-3.service` into worker and 3. The part behind the @ may be
// escaped as systemd-escape(1) does: `worker\x2d3`.
func unitInstance(unit string) (component string, index int, ok bool) {
	prefix, rest, found := strings.Cut(strings.TrimSuffix(unit, ".service"), "@")
	if !found || !strings.HasPrefix(prefix, "muster") {
		return "", -1, false
	}
	name := unescape(rest)
	at := strings.LastIndexByte(name, '-')
	if at <= 0 {
		return "", -1, false
	}
	n, err := strconv.Atoi(name[at+1:])
	if err != nil || n < 0 {
		return "", -1, false
	}
	return name[:at], n, true
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.HasPrefix(s[i:], `\x`) && i+4 <= len(s) {
			if c, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
