package launcher

import (
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

var systemdDeeds = map[Answer]deed{
	Done:      {"SuccessExitStatus", "the unit is inactive; 130 and 143 are as good, they end a stop"},
	Again:     {"RestartForceExitStatus", "the unit starts again, on this host"},
	Elsewhere: {"RestartForceExitStatus", "the same: systemd knows no other host"},
	Never:     {"RestartPreventExitStatus", "the unit is failed"},
}

var systemdSurvival = plan.Survival{
	By:    "systemd, by Restart=",
	Keeps: []string{KeptIndex, KeptHost, KeptWork, KeptLogs},
}

// systemd reads a service's variables (systemd.exec(5)) and, for a unit `muster@worker-3.service`,
// component and index from the unit's name.
func (f *finder) systemd() {
	a := &f.found.Allocation
	f.take(&a.ContainerID, "container_id", "INVOCATION_ID")
	f.found.WorkDir = first(f.env["STATE_DIRECTORY"], ":")
	if f.found.WorkDir != "" {
		f.found.Origins["work_dir"] = "STATE_DIRECTORY"
	}
	f.found.LogDir = first(f.env["LOGS_DIRECTORY"], ":")
	if f.found.LogDir != "" {
		f.found.Origins["log_dir"] = "LOGS_DIRECTORY"
	}
	unit := unitOf(f.facts.Cgroup)
	if unit != "" {
		f.found.JobID = unit
		f.found.Origins["job_id"] = "/proc/self/cgroup"
	}
	if unit != "" && f.facts.Machine != "" { // a unit's next process starts when the last one's control group is empty
		f.found.Slot = "systemd/" + f.facts.Machine + "/" + unit
		f.found.Origins["slot"] = "/proc/self/cgroup"
	}
	if component, index, ok := unitInstance(unit); ok {
		f.found.Component, f.found.Index = component, index
		f.found.Origins["component"] = "/proc/self/cgroup"
		f.found.Origins["index"] = "/proc/self/cgroup"
	}
}

// inScope tells whether the innermost unit around us is a scope: a login session or a terminal
// that a desktop opened. INVOCATION_ID is then only inherited from the user's service manager.
func (f *finder) inScope() bool {
	return strings.HasSuffix(unitOf(f.facts.Cgroup), ".scope")
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
