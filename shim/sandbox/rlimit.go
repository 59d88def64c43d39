package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
			wrong = append(wrong, fmt.Sprintf("limit %s %q: want a number or unlimited, or soft:hard", name,
				texts[name]))
		case limit.Soft > limit.Hard:
			wrong = append(wrong, fmt.Sprintf("limit %s %q: want a soft limit no greater than the hard one", name,
				texts[name]))
		default:
			limits[name] = limit
		}
	}
	if wrong != nil {
		return nil, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return limits, nil
}

// Raised are the names of the limits that are above this process's own hard ones, sorted.
func Raised(limits map[string]Rlimit) ([]string, error) {
	var raised []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		var own unix.Rlimit
		if err := unix.Getrlimit(slices.Index(rlimitNames, name), &own); err != nil {
			return nil, fmt.Errorf("limit %s: %w", name, err)
		}
		if limits[name].Hard > own.Max {
			raised = append(raised, name)
		}
	}
	return raised, nil
}

// limitHint says what the guard may set a limit to at most, and who could change that.
func (g *Guard) limitHint(name string, asked Rlimit) string {
	var has unix.Rlimit
	if err := unix.Prlimit(g.PID(), slices.Index(rlimitNames, name), nil, &has); err != nil {
		return ""
	}
	by := "muster.ulimit." + name
	if name == "memlock" {
		by += " (or muster.rdma)"
	}
	if asked.Hard <= has.Max { // of files the kernel has a bound of its own, for root too
		return fmt.Sprintf("%s asks for %s, above what the kernel of this host permits, as fs.nr_open: ask for less, "+
			"or let the operator raise that", by, asked)
	}
	return fmt.Sprintf("%s asks for %s, and the agent's hard limit on this host is %s: ask for no more, or let the "+
		"operator raise that, as by limits.conf(5) or the unit's Limit%s", by, asked, limitText(has.Max),
		strings.ToUpper(name))
}

// String is a limit as definitions write it.
func (l Rlimit) String() string { return limitText(l.Soft) + ":" + limitText(l.Hard) }

func limitText(n uint64) string {
	if n == Unlimited {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
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
