package conductor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// losses runs the loss timer of every member that has a record and no live key. It declares those lost (T7) whose time
// is over or whom the operator declared gone. While more than half of the gang is unreachable the longer time holds:
// those members find that none of them reaches the registry, conclude that the registry is down, and continue (protocol
// 6). All timers start anew when that state begins or ends, because some members may continue until then.
func (r *decision) losses() {
	away := r.expired()
	if len(away) == 0 {
		r.c.loss, r.c.mass = nil, false
		return
	}
	if !r.knowsRoster() {
		r.effects = append(r.effects, ReadRoster{Ref: r.d.Roster})
		return
	}
	if r.stale(away) {
		r.live = true
		return
	}
	if r.unread() {
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
		} else if !said && r.v.LiveAt.Before(t.end) {
			r.live = true // the time limit depends on who is reachable now
			continue
		}
		m.Phase = registry.PhaseLost
		r.effects = append(r.effects, Lost{Instance: a.Instance, Index: a.rec.Index, Member: m})
	}
	r.c.loss = loss
}

// stale tells whether the record of a newly missing member is newer than the reading of live/. A member that has just
// claimed is in the records and not in that reading: its loss timer must not start.
func (r *decision) stale(away []*absence) bool {
	return slices.ContainsFunc(away, func(a *absence) bool {
		t, missed := r.c.loss[a.Instance]
		return (!missed || t.inc != a.rec.Inc) && r.v.LiveAt.Before(a.rec.At)
	})
}

// expired lists the members that have a record and no live key, and whose place matters: also the newcomers of a flex.
func (r *decision) expired() []*absence {
	return slices.DeleteFunc(slices.Concat(r.missing, r.joining, r.removed, r.services), func(a *absence) bool {
		return a.live || a.res != noResult || !holds(a.rec.Member) || a.rec.Phase == registry.PhaseEnded
	})
}

// knowsRoster tells whether the sealed roster was read, or none exists yet. A waiting generation has the roster of the
// last generation, also of the last run: its members may still run.
func (r *decision) knowsRoster() bool {
	if r.d.Roster.ID == "" {
		return true
	}
	x := r.v.Roster
	return x != nil && strings.HasPrefix(r.d.Roster.ID, strconv.Itoa(x.Gen)+"-")
}

// unread finds members of the last roster that have no live key and no longer count. Only their records say which of
// them have left, and nothing else reads those. True means that mass cannot be decided yet. Each record must be at
// least as new as the reading without the member: a member that was leaving then has left by now.
func (r *decision) unread() bool {
	if r.d.Roster.ID == "" {
		return false
	}
	var unread []registry.Instance
	for _, row := range r.v.Roster.Rows {
		i := slices.IndexFunc(r.c.Facts.Components, func(c ComponentFacts) bool { return c.Name == row.Component })
		if i < 0 || !r.c.Facts.Components[i].Waited || row.Index < r.c.Facts.count(r.d, i) ||
			!r.isExpired(row.Instance) {
			continue
		}
		if latest(r.v.Records[row.Instance].At, r.v.AllAt).Before(r.v.LiveAt) {
			unread = append(unread, row.Instance)
		}
	}
	r.due = append(r.due, unread...)
	return len(unread) > 0
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

// isExpired tells whether a member has a record and no live key. A member whose record was not read has one: it is
// ready, or was sealed.
func (r *decision) isExpired(in registry.Instance) bool {
	if r.v.Live[in] || r.v.Ready[in] && !r.v.ReadyAt.Before(r.v.LiveAt) {
		return false
	}
	rec, read := r.v.Records[in]
	return !read && r.v.AllAt.IsZero() || holds(rec.Member)
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
