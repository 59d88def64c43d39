package registry

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Finding is what a member saw of another, or of itself, before it started: something that a person should mend, which
// ends nothing. It stands in the record of who saw it until that is over.
type Finding struct {
	Kind  FindingKind `json:"kind"`
	About Instance    `json:"about"`
	Inc   string      `json:"inc"` // of whom it is about
	Addr  string      `json:"addr"`
	Why   string      `json:"why"`
	Since time.Time   `json:"since"`
}

// FindingKind is what was found.
type FindingKind string

// The kinds.
const (
	NotReached FindingKind = "unreachable" // its agent does not answer at the address that its exports have
	NotApart   FindingKind = "together"    // it shares a host with another of its component, where that is forbidden
)

// PeersToTry are rows whose hosts an instance tries to reach before it starts: one of each host but its own, from its own
// rank on, at most so many. In a gang on more hosts than that each host is tried by so many others. The row of the instance
// itself must be in the roster.
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
		name := hostOf(row.Addr)
		if row.Instance == in || row.Done || name == "" || atHome(own, row) || seen[name] || len(seen) == most {
			return true
		}
		seen[name] = true
		return false
	})
}

// atHome tells that a row's address is this host's without asking: the same one, on the same machine as far as is known.
func atHome(own, row Row) bool {
	same := own.Boot == "" || row.Boot == "" || own.Boot == row.Boot
	return same && (hostOf(own.Addr) == hostOf(row.Addr) || loopbackHost(row.Addr) && own.Boot != "" && row.Boot != "")
}

// OnLoopback tells that a row's address is one that no other host can reach.
func (r Row) OnLoopback() bool { return loopbackHost(r.Addr) }

func loopbackHost(addr string) bool {
	host := hostOf(addr)
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (a.IsLoopback() || a.IsUnspecified())
}

// SharesHost are the other rows of an instance's component that are on its machine: one kernel has booted them all.
func (r Roster) SharesHost(in Instance) []Row {
	own, ok := r.Row(in)
	if !ok || own.Boot == "" {
		return nil
	}
	var rows []Row
	for _, row := range r.Rows {
		if row.Component == in.Component && row.Instance != in && row.Boot == own.Boot && !row.Done {
			rows = append(rows, row)
		}
	}
	return rows
}

// bootOf is as much of a boot's id as tells machines apart: it is a random uuid.
func bootOf(id string) string { return id[:min(len(id), 13)] }
