package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/shim/plan"
)

// rlimitNames in the order of RLIMIT_* (asm-generic/resource.h).
var rlimitNames = []string{
	"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile",
	"memlock", "as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime",
}

// Rlimit is one resource limit in the kernel's unit: bytes, seconds or a count.
type Rlimit struct{ Soft, Hard uint64 }

// ParseRlimits reads limits as definitions write them: `soft`, which is the hard limit too, or `soft:hard`, each a
// number in the kernel's unit (bytes, seconds or a count) or `unlimited`. All mistakes are in the error, in
// the order of the names.
func ParseRlimits(texts map[string]string) (map[string]Rlimit, error) {
	limits := make(map[string]Rlimit, len(texts))
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		limit, err := parseRlimit(texts[name])
		switch {
		case !slices.Contains(rlimitNames, name):
			wrong = append(wrong, fmt.Sprintf("limit %q: want one of %s", name, strings.Join(rlimitNames, " ")))
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("limit %s %q: want a number or unlimited, or soft:hard", name, texts[name]))
		case limit.Soft > limit.Hard:
			wrong = append(wrong, fmt.Sprintf("limit %s %q: want a soft limit no greater than the hard one", name, texts[name]))
		default:
			limits[name] = limit
		}
	}
	if wrong != nil {
		return nil, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return limits, nil
}

func parseRlimit(text string) (Rlimit, error) {
	first, second, both := strings.Cut(text, ":")
	soft, err := parseRlimitValue(first)
	if err != nil || !both {
		return Rlimit{soft, soft}, err
	}
	hard, err := parseRlimitValue(second)
	return Rlimit{soft, hard}, err
}

func parseRlimitValue(text string) (uint64, error) {
	if text == "unlimited" || text == "-1" {
		return Unlimited, nil
	}
	return strconv.ParseUint(text, 10, 64)
}

// Unenforced names the limits of l that the process engine does not hold, as in the JSON of plan.Limits, and why. That
// of memory is not among them: the watchdog holds it, though it looks only once a second.
func (Process) Unenforced(l plan.Limits) []plan.Unenforced {
	const noCgroup = "the process engine has no cgroup"
	var u []plan.Unenforced
	for _, c := range []struct {
		asked      bool
		limit, why string
	}{
		{l.SwapMB > 0, "swap_mb", noCgroup},
		{l.VCores > 0, "vcores", noCgroup},
		{l.CPUHard, "cpu_hard", noCgroup + "; vcores are not a ceiling"},
		{l.Pids > 0, "pids", noCgroup + "; RLIMIT_NPROC counts a user's processes, not this instance's"},
		{l.ShmMB > 0, "shm_mb", "the process engine has no mount namespace; /dev/shm is the host's"},
		{l.GPUs > 0, "gpus", "the process engine has no device list; only the environment names the devices"},
	} {
		if c.asked {
			u = append(u, plan.Unenforced{Limit: c.limit, Why: c.why})
		}
	}
	return u
}
