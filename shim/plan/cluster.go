package plan

import (
	"strings"

	"github.com/muster-agent/muster/registry"
)

// Cluster is a roster by role: the ClusterSpec from which each framework's variables are made. Each list is in rank
// order, which does not depend on the order of arrival.
type Cluster struct {
	Chiefs     []registry.Row
	Workers    []registry.Row
	PS         []registry.Row
	Evaluators []registry.Row
}

// ClusterOf sorts the roster's rows by role. It leaves out rows without host:port, because nobody can dial them; only
// an evaluator, which nobody dials, may have none. Services are not in a cluster.
func ClusterOf(r registry.Roster) Cluster {
	var c Cluster
	for _, row := range r.Rows {
		if !hasPort(row.Addr) && row.Role != roleEvaluator {
			continue
		}
		switch row.Role {
		case roleChief:
			c.Chiefs = append(c.Chiefs, row)
		case roleWorker:
			c.Workers = append(c.Workers, row)
		case rolePS:
			c.PS = append(c.PS, row)
		case roleEvaluator:
			c.Evaluators = append(c.Evaluators, row)
		}
	}
	return c
}

// Leading are the workers for programs that know no chief: chiefs first, then workers.
func (c Cluster) Leading() []registry.Row {
	return append(append([]registry.Row{}, c.Chiefs...), c.Workers...)
}

// Place is the position of an instance in rows, -1 if it is not there.
func Place(rows []registry.Row, component string, index int) int {
	for i, row := range rows {
		if row.Component == component && row.Index == index {
			return i
		}
	}
	return -1
}

// Addresses are the rows' host:port.
func Addresses(rows []registry.Row) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = row.Addr
	}
	return out
}

// Hosts are the rows' hosts without brackets, each once, in the order of the rows.
func Hosts(rows []registry.Row) []string {
	seen := map[string]bool{}
	out := []string{}
	for _, row := range rows {
		if host := hostOf(row.Addr); !seen[host] {
			seen[host] = true
			out = append(out, host)
		}
	}
	return out
}

// hasPort tells host:port from a host alone. An IPv6 address has brackets if a port follows.
func hasPort(address string) bool {
	at := strings.LastIndexByte(address, ':')
	if at <= 0 || !digits(address[at+1:]) {
		return false
	}
	host := address[:at]
	return !strings.Contains(host, ":") || strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
}

// hostOf is the host of host:port, without brackets, or the address itself where it has no port.
func hostOf(address string) string {
	if hasPort(address) {
		address = address[:strings.LastIndexByte(address, ':')]
	}
	return strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
