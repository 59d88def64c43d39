package registry

import (
	"cmp"
	"slices"
)

// PeersToTry are rows whose hosts an instance tries to reach before it starts: one row of each other host, from its own
// rank on, at most that many. In a gang on more hosts, each host is tried by the same number of others. The instance's
// own row must be in the roster.
func PeersToTry(r Roster, in Instance, most int) []Row {
	own, ok := r.Row(in)
	if !ok {
		return nil
	}
	rows := slices.Clone(r.Rows)
	turn := func(row Row) int { return (row.Rank - own.Rank + len(rows)) % len(rows) }
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(turn(a), turn(b)) })
	seen := map[string]bool{}
	return slices.DeleteFunc(rows, func(row Row) bool {
		name := HostOf(row.Addr)
		if row.Instance == in || row.Done || name == "" || atHome(own, row) || seen[name] || len(seen) == most {
			return true
		}
		seen[name] = true
		return false
	})
}

// atHome tells whether a row's address is this host's: the same address, on the same machine as far as is known.
func atHome(own, row Row) bool {
	same := own.Boot == "" || row.Boot == "" || own.Boot == row.Boot
	return same && (HostOf(own.Addr) == HostOf(row.Addr) || loopbackHost(row.Addr) && own.Boot != "" && row.Boot != "")
}
