package registry

import (
	"maps"
	"strings"
)

// Instances lists every instance that the directive counts, in rank order, services last.
func (f Facts) Instances(d Directive) []Instance {
	var all []Instance
	for _, waited := range []bool{true, false} {
		for i, c := range f.Components {
			if c.Waited != waited {
				continue
			}
			for k := range f.count(d, i) {
				all = append(all, Instance{Component: c.Name, Index: k})
			}
		}
	}
	return all
}

// Rank is the position of an instance in the whole gang, -1 if the directive does not count it.
func (f Facts) Rank(d Directive, in Instance) int {
	base := 0
	for _, waited := range []bool{true, false} {
		for i, c := range f.Components {
			n := f.count(d, i)
			switch {
			case c.Waited != waited:
			case c.Name != in.Component:
				base += n
			case in.Index < 0 || in.Index >= n:
				return -1
			default:
				return base + in.Index
			}
		}
	}
	return -1
}

// World is how many instances are waited for: WORLD_SIZE.
func (f Facts) World(d Directive) int {
	n := 0
	for i, c := range f.Components {
		if c.Waited {
			n += f.count(d, i)
		}
	}
	return n
}

// ClusterAddr is the member's address in the ClusterSpec: host:port, or its host without such an export.
func (m Member) ClusterAddr() string {
	if m.Address != "" {
		return m.Address
	}
	return m.Addr
}

// published tells that a member has told its ports, exports and guard: it is staged.
func (m Member) published() bool { return m.Guard != nil || m.Address != "" || len(m.Exports) > 0 }

// SameRow tells whether this member may run with the row: the same incarnation, or, in the instance
// scope, the same addresses and ports. Where its agent answers other hosts may differ in a member that goes by its name: it has
// moved, and who resolves the name again finds it.
func (m Member) SameRow(r Row, scope string) bool {
	if m.Inc == r.Inc {
		return true
	}
	return scope == ScopeInstance && m.ClusterAddr() == r.Addr && (m.Peer == r.Peer || m.byName()) && maps.Equal(m.Ports, r.Ports)
}

// byName tells whether the member is written by a name that is not its host's.
func (m Member) byName() bool {
	return m.Address != "" && hostOf(m.Address) != strings.Trim(m.Addr, "[]")
}

// byName tells whether the row has the instance's name in Consul, whatever the domain.
func (r Row) byName(app string) bool {
	name := MemberName(app, r.Instance, "")
	return strings.HasPrefix(hostOf(r.Addr), strings.TrimSuffix(name, DefaultDomain))
}

// Row finds the row of an instance.
func (r Roster) Row(in Instance) (Row, bool) {
	for _, row := range r.Rows {
		if row.Instance == in {
			return row, true
		}
	}
	return Row{}, false
}

// buildRoster makes the rows of every instance whose record is given. Services without a record are
// left out, nobody waits for them; a waited instance that ended for good without one has a bare row.
func buildRoster(f Facts, d Directive, resume *int64, record func(Instance) Member) Roster {
	r := Roster{Version: 1, Run: d.Run, Gen: d.Gen, Resume: resume}
	for rank, in := range f.Instances(d) {
		c, _ := f.component(in.Component)
		m := record(in)
		if !c.Waited && (m.Inc == "" || m.Run != d.Run || m.Phase == PhaseLost || m.Phase == PhaseLeft) {
			continue
		}
		r.Rows = append(r.Rows, Row{
			Instance: in, Rank: rank, Role: c.Role, Inc: m.Inc, Addr: m.ClusterAddr(),
			Ports: m.Ports, Exports: m.Exports, API: m.API, Peer: m.Peer, Boot: bootOf(m.Boot), Done: c.Waited && settled(m, d, c.Scope) != unsettled,
		})
	}
	return r
}

// hostOf cuts the port off `host:port` and the brackets off an IPv6 address.
func hostOf(addr string) string {
	if i := strings.LastIndexByte(addr, ':'); i >= 0 && (strings.Count(addr, ":") == 1 || strings.HasPrefix(addr, "[") && !strings.HasSuffix(addr, "]")) {
		addr = addr[:i]
	}
	return strings.Trim(addr, "[]")
}
