package conductor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
)

// losses runs the loss timer of every member that has a record and no live key. It declares those lost (T7) whose time
// is over or whom the operator declared gone. While more than half of the gang is unreachable the longer time holds:
// those members find that none of them reaches the registry, conclude that the registry is down, and continue
// (doc/protocol.md). All timers start anew when that state begins or ends, because some members may continue until
// then.
func (r *decision) losses() {
	away := r.expired()
	if len(away) == 0 {
		r.c.loss, r.c.mass = nil, false
		return
	}
	if mass := r.mass(); mass != r.c.mass {
		r.c.loss, r.c.mass = nil, mass
	}
	grace := r.c.Facts.Times.Lost
	if r.c.mass {
		grace = r.c.Facts.Times.LostMass
	}
	loss := map[registry.Instance]lossTimer{}
	for _, a := range away {
		m := a.rec.Member
		t, ok := r.c.loss[a.Instance]
		if !ok || t.inc != m.Inc {
			t = lossTimer{inc: m.Inc, since: r.now}
		}
		t.end = t.since.Add(grace)
		loss[a.Instance] = t
		if said := declaredGone(r.v.Asks, a.Instance, m.Inc); !said && r.now.Before(t.end) {
			r.wakeAt(t.end)
			continue
		} else if !said && !r.readSince(t.end) { // the time limit depends on who is reachable now
			continue
		}
		m.Phase = registry.PhaseLost
		r.effects = append(r.effects, Lost{Instance: a.Instance, Index: a.rec.Index, Member: m})
	}
	r.c.loss = loss
}

// readSince tells whether it was read after t who is ready, and the records of those who are not; what was not is asked
// for.
func (r *decision) readSince(t time.Time) bool {
	old := slices.DeleteFunc(slices.Concat(r.missing, r.removed), func(a *absence) bool {
		return a.res != noResult || !a.rec.At.Before(t)
	})
	for _, a := range old {
		if !slices.Contains(r.due, a.Instance) {
			r.due = append(r.due, a.Instance)
		}
	}
	ready := !r.v.ReadyAt.Before(t)
	if !ready && !slices.Contains(r.effects, Effect(ReadReady{})) {
		r.effects = append(r.effects, ReadReady{})
	}
	return ready && len(old) == 0
}

// expired lists the members that have a record and no live key, and whose place matters: also the newcomers of a flex.
func (r *decision) expired() []*absence {
	return slices.DeleteFunc(slices.Concat(r.missing, r.joining, r.removed, r.services), func(a *absence) bool {
		return a.rec.Live || a.res != noResult || !holds(a.rec.Member) || a.rec.Phase == registry.PhaseEnded
	})
}

// knowsRoster tells whether the sealed roster was read, or none exists yet. A waiting generation has the roster of the
// last generation, also of the last run: its members may still run.
func (v View) knowsRoster() bool {
	ref := v.Directive.Roster.ID
	return ref == "" || v.Roster != nil && strings.HasPrefix(ref, strconv.Itoa(v.Roster.Gen)+"-")
}

// mass tells whether more than half of the awaited members are unreachable. It counts the sealed roster, whose members
// ask each other, or else the instances of the directive.
func (r *decision) mass() bool {
	counted := func(in registry.Instance) bool {
		f, ok := r.c.Facts.component(in.Component)
		return ok && f.Waited
	}
	all := r.c.Facts.Instances(r.d)
	if r.most(slices.DeleteFunc(all, func(in registry.Instance) bool { return !counted(in) })) {
		return true
	}
	if r.d.Roster.ID == "" {
		return false
	}
	var rows []registry.Instance
	for _, row := range r.v.Roster.Rows {
		if counted(row.Instance) {
			rows = append(rows, row.Instance)
		}
	}
	return r.most(rows)
}

// most tells whether more than half are unreachable.
func (r *decision) most(all []registry.Instance) bool {
	away := 0
	for _, in := range all {
		if r.isExpired(in) {
			away++
		}
	}
	return 2*away > len(all)
}

// isExpired tells whether a member has a record and no live key. The records of all who are not ready were read.
func (r *decision) isExpired(in registry.Instance) bool {
	rec := r.v.Records[in]
	return !r.v.Ready[in] && !rec.Live && holds(rec.Member)
}

// Losses are the unreachable members, in the order of their names.
func (c State) Losses() []registry.Loss {
	var all []registry.Loss
	for in, t := range c.loss {
		all = append(all, registry.Loss{Instance: in, Inc: t.inc, Since: t.since, End: t.end, Mass: c.mass})
	}
	slices.SortFunc(all, func(a, b registry.Loss) int {
		return cmp.Or(cmp.Compare(a.Instance.Component, b.Instance.Component),
			cmp.Compare(a.Instance.Index, b.Instance.Index))
	})
	return all
}
