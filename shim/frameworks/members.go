package frameworks

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// trainers are the workers for programs that know no chief: chiefs first, then workers, each in rank order. Unlike
// those of plan.Cluster they need no address: most frameworks dial only the first.
func trainers(r registry.Roster) []registry.Row {
	return append(withRole(r, "chief"), withRole(r, "worker")...)
}

// servers are the parameter servers in rank order.
func servers(r registry.Roster) []registry.Row { return withRole(r, "ps") }

func withRole(r registry.Roster, role string) []registry.Row {
	rows := slices.Clone(r.Rows)
	return slices.DeleteFunc(rows, func(row registry.Row) bool { return row.Role != role })
}

// placeOf is the position of the plan's instance among the rows, -1 if it is none of them.
func placeOf(rows []registry.Row, p plan.Plan) int {
	return plan.Place(rows, p.Who.Component, p.Who.Index)
}

// split separates an address into its host, without brackets, and its port, which is empty for a host alone.
func split(address string) (host, port string) {
	if at := strings.LastIndexByte(address, ':'); at > 0 {
		if _, err := strconv.ParseUint(address[at+1:], 10, 16); err == nil {
			host, port = address[:at], address[at+1:]
		}
	}
	if port == "" || strings.Contains(host, ":") && !strings.HasPrefix(host, "[") { // an IPv6 address alone
		host, port = address, ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), port
}

// numeric tells whether a host is an IPv4 address. Some programs bind or compare it without asking a resolver.
func numeric(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Is4()
}

// rising is MUSTER_PROC_RANKS: the variables that rise by one from each process of a container to the next. Their
// values hold for the first process. It is empty if there is only one process.
func rising(p plan.Plan, names ...string) map[string]string {
	if p.Processes < 2 {
		return nil
	}
	return map[string]string{plan.RisingVariable: strings.Join(names, " ")}
}

// processes is how many run in each container that trains.
func processes(p plan.Plan) int { return max(p.Processes, 1) }

// set adds decimal numbers to an environment.
func set(env map[string]string, numbers map[string]int) {
	for name, n := range numbers {
		env[name] = strconv.Itoa(n)
	}
}

// tell merges parts into one environment.
func tell(parts ...map[string]string) map[string]string {
	env := map[string]string{}
	for _, part := range parts {
		maps.Copy(env, part)
	}
	return env
}
