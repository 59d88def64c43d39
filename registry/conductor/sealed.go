package conductor

import (
	"strings"

	"github.com/muster-agent/muster/registry"
)

// holds tells that the record is of a member that has not given its index back.
func holds(m registry.Member) bool {
	return m.Inc != "" && m.Phase != registry.PhaseLost && m.Phase != registry.PhaseLeft
}

// staged tells that a member has published its ports, exports and guard: it is staged.
func staged(m registry.Member) bool { return m.Guard != nil || m.Address != "" || len(m.Exports) > 0 }

// byName tells whether the row has the instance's name in Consul, whatever the domain.
func byName(r registry.Row, app string) bool {
	name := registry.MemberName(app, r.Instance, "")
	return strings.HasPrefix(registry.HostOf(r.Addr), strings.TrimSuffix(name, registry.DefaultDomain))
}

// buildRoster makes the rows of every instance whose record is given. Services without a record are
// left out, nobody waits for them; a waited instance that ended for good without one has a bare row.
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
