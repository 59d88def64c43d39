package launcher

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/plan"
)

// Describe tells people what is known of the launcher: each value with where it came from, in the order in which an
// agent needs them, and the two tables. host is the address that was chosen.
func (l Launcher) Describe(f Found, host Host) plan.Launcher {
	notes := append([]string{}, f.Notes...)
	if host.Passed != "" {
		notes = append(notes, host.Passed)
	}
	return plan.Launcher{
		Name: string(f.Name), Known: f.known(host), Answers: l.tells(), Survives: l.Survival, Notes: notes,
	}
}

func (f Found) known(host Host) []plan.Known {
	var all []plan.Known
	// add takes a value, and says who settles it where the launcher does not.
	add := func(what, value, otherwise string) {
		from := otherwise
		if value != "" {
			from = f.Origins[what]
		}
		if value != "" || otherwise != "" {
			all = append(all, plan.Known{What: strings.ReplaceAll(what, "_", " "), Value: value, From: from})
		}
	}
	a := f.Allocation
	claimed := "claimed: a free one"
	if f.Rank >= 0 && f.Component == "" {
		claimed = "by the rank"
	}
	add("job_id", f.JobID, "")
	add("app_id", f.AppID, "--app-id")
	add("run", f.RunID, "--run, else 1")
	add("component", f.Component, claimed+", in rank order")
	add("index", whole(f.Index, 0), claimed)
	add("rank", whole(f.Rank, 0), "")
	add("container_id", a.ContainerID, "")
	add("attempt", whole(f.Attempt, 1), "")
	add("slot", f.Slot, "")
	all = append(all, plan.Known{What: "host", Value: host.Address, From: host.Origin})
	if len(a.Ports) == 0 {
		add("ports", "", "--ports: a free one of the range for each")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Ports)) {
		all = append(all, plan.Known{
			What: "port " + name, Value: strconv.Itoa(a.Ports[name]), From: f.Origins["ports."+name],
		})
	}
	add("devices", strings.Join(a.Devices, ","), "the agent's choice, where GPUs are asked for")
	for _, one := range []struct {
		what, unit, origin string
		n                  int
	}{
		{"memory", " MB", "envelope.memory_mb", a.Envelope.MemoryMB},
		{"cores", "", "envelope.vcores", a.Envelope.VCores},
	} {
		if one.n > 0 {
			all = append(all, plan.Known{
				What: one.what, Value: strconv.Itoa(one.n) + one.unit, From: f.Origins[one.origin],
			})
		} else {
			add(one.what, "", "no limit around the agent is seen")
		}
	}
	window := ""
	if a.KillWindow > 0 {
		window = time.Duration(a.KillWindow * float64(time.Second)).String()
	}
	add("kill_window", window, "none: nobody kills after a while")
	add("work_dir", f.WorkDir, "--work-dir, else as the line work folder says")
	add("log_dir", f.LogDir, "--log-dir, else in the work folder")
	return all
}

// whole prints a number that is given from least on.
func whole(n, least int) string {
	if n < least {
		return ""
	}
	return strconv.Itoa(n)
}
