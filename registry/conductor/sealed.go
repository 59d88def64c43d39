package conductor

import (
	"strings"

	"github.com/muster-agent/muster/registry"
)

// holds tells whether the record belongs to a member that has not given its index back.
func holds(m registry.Member) bool {
	return m.Inc != "" && m.Phase != registry.PhaseLost && m.Phase != registry.PhaseLeft
}

// staged tells whether a member has published its ports, exports and guard.
func staged(m registry.Member) bool { return m.Guard != nil || m.Address != "" || len(m.Exports) > 0 }

// byName tells whether the row contains the instance's name in Consul, in any domain.
func byName(r registry.Row, app string) bool {
	name := registry.MemberName(app, r.Instance, "")
	return strings.HasPrefix(registry.HostOf(r.Addr), strings.TrimSuffix(name, registry.DefaultDomain))
}

// buildRoster makes the row of every instance whose record is given. A service without a record is left out, because
// nobody waits for it. An awaited instance that ended for good without a record has a bare row.
func buildRoster(
	f Facts, d registry.Directive, resume *int64, record func(registry.Instance) registry.Member,
) registry.Roster {
	r := registry.Roster{Version: 1, Run: d.Run, Gen: d.Gen, Resume: resume}
	for rank, in := range f.Instances(d) {
		c, _ := f.component(in.Component)
		m := record(in)
		if !c.Waited && (m.Inc == "" || m.Run != d.Run || m.Phase == registry.PhaseLost ||
			m.Phase == registry.PhaseLeft) {
			continue
		}
		row := m.Row(in, rank, c.Role)
		row.Done = c.Waited && resultOf(m, d, c.Scope) != noResult
		r.Rows = append(r.Rows, row)
	}
	return r
}
