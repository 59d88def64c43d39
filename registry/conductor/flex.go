package conductor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// flex changes the counts of a running app. With more members the directive names the target, and newcomers join beside
// those that run, until all are staged. Where processes are told of the gang a new generation begins then, with fewer
// members at once. Elsewhere only the difference starts and stops. True means that the step's effect is decided.
func (r *decision) flex() bool {
	if r.joined() {
		n := r.d.Target
		why := "flex: " + countsText(r.d.Counts, n)
		restarts := r.c.Facts.FlexRestarts(r.completed(r.d.Counts), r.completed(n))
		r.d.Counts, r.d.Target = n, nil
		if restarts {
			return r.rebuild("", why, r.d.Budget)
		}
		return r.reseal(why)
	}
	if r.d.Target != nil && (r.flexFailed() || r.flexOverdue()) {
		return true
	}
	if len(r.removed) == 0 && r.changed() {
		return r.reseal(r.d.Why)
	}
	for _, a := range r.v.Asks {
		if a.Kind != registry.AskFlex {
			continue
		}
		want, err := r.wanted(a) // one ask at a time: two may contradict each other
		if err != nil || maps.Equal(want, r.d.Target) || r.d.Target == nil &&
			maps.Equal(want, r.completed(r.d.Counts)) {
			return r.only(DropAsk{Ask: a}) // it is served, or can never be
		}
		if len(r.removed) == 0 { // it may want their indexes
			return r.retarget(want)
		}
	}
	return false
}

// retarget writes the counts of a flex into the directive.
func (r *decision) retarget(want map[string]int) bool {
	have := r.completed(r.d.Counts)
	restarts := r.c.Facts.FlexRestarts(have, want)
	up := slices.ContainsFunc(r.c.Facts.Components, func(f ComponentFacts) bool {
		return f.Waited && want[f.Name] > have[f.Name]
	})
	why := "flex: " + countsText(r.d.Counts, want)
	if restarts && !up {
		r.d.Counts, r.d.Target = want, nil
		return r.rebuild("", why, r.d.Budget)
	}
	n := r.next()
	n.Why = why
	switch {
	case restarts:
		n.Target = want
	case up: // those that go, go now
		n.Counts, n.Target = fewer(have, want), want
	default:
		n.Counts, n.Target = want, nil
	}
	return r.only(Retarget{Index: r.v.DirectiveIndex, Directive: n})
}

// fewer takes of each component the smaller count.
func fewer(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	for name := range all {
		all[name] = min(all[name], b[name])
	}
	return all
}

// changed tells whether the running generation has other members than its roster: indexes that a flex removed are gone,
// or a replacement is at another address.
func (r *decision) changed() bool {
	if r.d.Roster.ID == "" {
		return false
	}
	gone := slices.ContainsFunc(r.v.Roster.Rows, func(row registry.Row) bool {
		_, ok := r.uncounted(row)
		return ok
	})
	return gone || slices.ContainsFunc(r.missing, r.elsewhere)
}

// elsewhere tells whether a member is new, or has come back at another address, and may run there beside the others.
func (r *decision) elsewhere(a *absence) bool {
	row, ok := r.row(a)
	return a.facts.InPlace && r.isStaged(a) && (!ok || a.facts.Moves && moved(r.c.Facts.App, a.rec.Member, row))
}

// reseal writes the roster of the running generation again (T5). Rows of members that run stay as they are.
func (r *decision) reseal(why string) bool {
	rows := make(map[registry.Instance]registry.Row, len(r.v.Roster.Rows))
	for _, row := range r.v.Roster.Rows {
		rows[row.Instance] = row
	}
	for _, a := range r.missing {
		if r.elsewhere(a) {
			delete(rows, a.Instance)
		}
	}
	n := r.next()
	n.Why = why
	roster := buildRoster(r.c.Facts, n, n.Resume, func(in registry.Instance) registry.Member {
		return r.v.Records[in].Member
	})
	for i, row := range roster.Rows {
		if old, ok := rows[row.Instance]; ok {
			old.Rank = row.Rank
			roster.Rows[i] = old
		}
	}
	return r.sealed(n, roster)
}

// joined tells whether every newcomer of the target is staged: the gang does not stop for one that is still fetching,
// nor for the record of one that has died.
func (r *decision) joined() bool {
	if r.d.Target == nil || len(r.removed) > 0 {
		return false
	}
	return !slices.ContainsFunc(r.joining, func(a *absence) bool { return !r.isStaged(a) })
}

func (r *decision) isStaged(a *absence) bool {
	m := &a.rec.Member
	return a.rec.Live && m.Inc != "" && m.Run == r.d.Run && staged(*m) &&
		(m.Phase == registry.PhaseJoined || m.Phase == registry.PhaseReady)
}

// flexFailed gives a flex up at once of which a newcomer has failed for good: it would be waited for in vain. A record
// that is older than the target is of a flex before. True means that the step's effect is decided.
func (r *decision) flexFailed() bool {
	for _, a := range r.joining {
		m := &a.rec
		if resultOf(m.Member, r.d, registry.ScopeInstance) == failedForGood && m.Index > r.c.targetIx {
			return r.giveFlexUp(failure{absence: a, exit: m.Exit, class: m.Exit.Class}.sentence())
		}
	}
	return false
}

// flexOverdue gives a flex up whose newcomers are not all staged within the barrier timeout. True means that the step's
// effect is decided.
func (r *decision) flexOverdue() bool {
	end := r.c.targetAt.Add(r.limit())
	if r.now.Before(end) {
		r.wakeAt(end)
		return false
	}
	late := slices.DeleteFunc(slices.Clone(r.joining), r.isStaged)
	return r.giveFlexUp(fmt.Sprintf("not staged after %s: %s", seconds(r.limit()), some(late, namedMissing, describe)))
}

// giveFlexUp leaves the gang as it is.
func (r *decision) giveFlexUp(why string) bool {
	n := r.next()
	n.Target = nil
	n.Why = fmt.Sprintf("flex given up: %s; %s", why, countsKept(r.completed(r.d.Counts), r.d.Target))
	return r.only(Retarget{Index: r.v.DirectiveIndex, Directive: n})
}

// countsKept names the components that a flex would have changed, with their counts.
func countsKept(have, want map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] != want[name] {
			parts = append(parts, fmt.Sprintf("%s stays %d", name, have[name]))
		}
	}
	return strings.Join(parts, ", ")
}

// wanted reads the counts that an ask names; other components keep theirs.
func (r *decision) wanted(a registry.Ask) (map[string]int, error) {
	want := r.completed(r.d.Counts)
	for name, text := range a.Args {
		if _, ok := want[name]; !ok {
			return nil, fmt.Errorf("flex %s: no component %s", a.ID, name)
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("flex %s: %s: got %q, want a number from 0", a.ID, name, text)
		}
		want[name] = n
	}
	after := r.d
	if after.Counts = want; r.c.Facts.World(r.d) > 0 && r.c.Facts.World(after) == 0 {
		return nil, fmt.Errorf("flex %s: no instance would be left whose end ends the run", a.ID)
	}
	return want, nil
}

// completed fills the counts up with those of the definition.
func (r *decision) completed(counts map[string]int) map[string]int {
	all := r.c.Facts.counts()
	maps.Copy(all, counts)
	return all
}

// drops deletes the asks of the operator that are served.
func (r *decision) drops() {
	for _, a := range r.v.Asks {
		if a.Kind == registry.AskGone && r.goneServed(a) {
			r.effects = append(r.effects, DropAsk{Ask: a})
		}
	}
}

// goneServed tells whether the incarnation that the operator declared gone is lost or has a successor.
func (r *decision) goneServed(a registry.Ask) bool {
	in, err := registry.ParseInstance(a.Args["instance"])
	if err != nil || a.Args["inc"] == "" {
		return true
	}
	rec, ok := r.v.Records[in]
	return ok && rec.Inc != "" && (rec.Inc != a.Args["inc"] || rec.Phase == registry.PhaseLost ||
		rec.Phase == registry.PhaseLeft)
}

func countsText(have, want map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] != want[name] {
			parts = append(parts, fmt.Sprintf("%s %d to %d", name, have[name], want[name]))
		}
	}
	return strings.Join(parts, ", ")
}
