package conductor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// flex changes the counts of a running app. With fewer members a new generation begins at once. With more members the
// directive names the target, newcomers join beside the running generation, and the new generation begins when all are
// staged. True means that the step's effect is decided.
func (r *decision) flex() bool {
	if r.joined() {
		n := r.d.Target
		why := "flex: " + countsText(r.d.Counts, n)
		r.d.Counts, r.d.Target = n, nil
		return r.rebuild("", why, r.d.Budget)
	}
	if r.d.Target != nil && r.flexOverdue() {
		return true
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
		return r.retarget(want)
	}
	return false
}

// retarget writes the counts of a flex into the directive.
func (r *decision) retarget(want map[string]int) bool {
	up, members := false, false
	for _, f := range r.c.Facts.Components {
		have := r.completed(r.d.Counts)[f.Name]
		up = up || f.Waited && want[f.Name] > have
		members = members || f.Waited && want[f.Name] != have
	}
	if members && !up {
		why := "flex: " + countsText(r.d.Counts, want)
		r.d.Counts, r.d.Target = want, nil
		return r.rebuild("", why, r.d.Budget)
	}
	n := r.next()
	n.Why = "flex: " + countsText(r.d.Counts, want)
	if up {
		n.Target = want
	} else { // only services change: nothing has to stop
		n.Counts, n.Target = want, nil
	}
	return r.only(Retarget{Index: r.v.DirectiveIndex, Directive: n})
}

// joined tells whether every newcomer of the target is staged: the gang does not stop for one that is still fetching,
// nor for the record of one that has died.
func (r *decision) joined() bool {
	if r.d.Target == nil {
		return false
	}
	return !slices.ContainsFunc(r.joining, func(a *absence) bool { return !r.isStaged(a) })
}

func (r *decision) isStaged(a *absence) bool {
	m := &a.rec.Member
	return a.rec.Live && m.Inc != "" && m.Run == r.d.Run && staged(*m) &&
		(m.Phase == registry.PhaseJoined || m.Phase == registry.PhaseReady)
}

// flexOverdue gives a flex up whose newcomers are not all staged within the barrier timeout: the gang stays as it is.
// True means that the step's effect is decided.
func (r *decision) flexOverdue() bool {
	end := r.c.targetAt.Add(r.limit())
	if r.now.Before(end) {
		r.wakeAt(end)
		return false
	}
	late := slices.DeleteFunc(slices.Clone(r.joining), r.isStaged)
	names := some(late, namedMissing, describe)
	stays := countsKept(r.completed(r.d.Counts), r.d.Target)
	n := r.next()
	n.Target = nil
	n.Why = fmt.Sprintf("flex given up after %s, not staged: %s; %s",
		seconds(r.limit()), names, stays)
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
	if r.members(r.completed(r.d.Counts)) > 0 && r.members(want) == 0 {
		return nil, fmt.Errorf("flex %s: no instance would be left whose end ends the run", a.ID)
	}
	return want, nil
}

// members is how many instances are awaited under these counts.
func (r *decision) members(counts map[string]int) int {
	n := 0
	for _, f := range r.c.Facts.Components {
		if f.Waited {
			n += counts[f.Name]
		}
	}
	return n
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
