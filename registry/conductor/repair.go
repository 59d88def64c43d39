package conductor

import (
	"fmt"

	"github.com/muster-agent/muster/registry"
)

// repair decides about the members that a running generation lacks. It rebuilds the generation (T11) if the budget
// allows, else the failure is final. True means that the step's effect is decided.
func (r *decision) repair() bool {
	var free, charged []failure
	for _, a := range r.missing {
		if a.res != noResult {
			continue
		}
		f, ok := r.breaks(a)
		switch {
		case !ok:
		case f.free:
			free = append(free, f)
		default:
			charged = append(charged, f)
		}
	}
	if len(charged) > 0 && r.refills() && r.v.CheckpointsAt.Before(newestSince(charged)) {
		return r.only(ReadRecords{Of: instancesOf(charged), Checkpoints: true})
	}
	sortFirst(charged)
	for i, f := range charged {
		b, ok := Charge(r.d.Budget, f.rule, wall(r.now), r.newestStep())
		if ok {
			return r.restart(f.Instance.String(), f.sentence(), b)
		}
		charged[i].budget = b
	}
	if len(charged) > 0 && r.final(charged) {
		return true
	}
	if len(free) == 0 {
		return r.fullRestart()
	}
	return r.restart(free[0].Instance.String(), free[0].sentence(), r.d.Budget)
}

// final counts failures with a spent budget as failures for good.
func (r *decision) final(list []failure) bool {
	r.failures = append(r.failures, list...)
	for _, f := range list {
		f.res = failedForGood
		r.done[f.Component]++
	}
	return r.failed() || r.succeeded()
}

// breaks tells whether and how this member's state breaks the running generation.
func (r *decision) breaks(a *absence) (failure, bool) {
	m := a.rec.Member
	if m.Inc == "" {
		return failure{}, false
	}
	row, _ := r.row(a)
	if a.facts.Scope == registry.ScopeInstance {
		return r.breaksInstance(a, row)
	}
	f := r.failureOf(a, r.d.Budget, r.c.Facts.GangBudget)
	if a.facts.Scope == registry.ScopeNever {
		f.rule = BudgetRule{}
	}
	switch {
	case m.Inc != row.Inc:
		f.what = fmt.Sprintf(causeReplaced, a.Instance)
		return f, true
	case m.Phase == registry.PhaseFailed, m.Phase == registry.PhaseLost, m.Phase == registry.PhaseLeft:
		return f, true
	}
	return failure{}, false
}

// breaksInstance is the rule of the instance scope: a dead member is waited for, and one that returns at another
// address breaks the generation, unless nobody knows the address. Its claim or its report has charged its own budget.
func (r *decision) breaksInstance(a *absence, row registry.Row) (failure, bool) {
	m := a.rec.Member
	f := r.failureOf(a, r.d.Budget, r.c.Facts.GangBudget)
	switch {
	case a.rec.Live && !a.facts.Moves && moved(r.c.Facts.App, m, row):
		f.free, f.what = true, fmt.Sprintf(causeMoved, a.Instance, m.ClusterAddr())
		return f, true
	// that member leaves: its replacement is waited for
	case m.Phase == registry.PhaseFailed && f.class != registry.ClassLauncher:
		return f, true
	}
	return failure{}, false
}

// moved tells whether a member is elsewhere than its row says. While it stages, its ports are not published yet, so
// only the host counts. A member addressed by name may run on any host.
func moved(app string, m registry.Member, row registry.Row) bool {
	if m.Phase == registry.PhaseJoined && m.Address == "" && len(m.Exports) == 0 {
		return registry.HostOf(m.Addr) != registry.HostOf(row.Addr) && !byName(row, app)
	}
	return !m.SameRow(row, registry.ScopeInstance)
}

// overdue ends a run in which an instance was not replaced within the barrier timeout.
func (r *decision) overdue() bool {
	for _, a := range r.missing {
		if a.res != noResult {
			continue
		}
		if end := a.since.Add(r.limit()); r.now.Before(end) {
			r.wakeAt(end)
			continue
		}
		return r.conclude(registry.Verdict{
			Outcome: registry.Failed, Class: registry.ClassTimeout, First: a.String(),
			Cause:  fmt.Sprintf(causeNotReplaced, a.Instance, seconds(r.limit()), standing(a)),
			Advice: "see why no replacement was launched, or raise muster.barrier.timeout",
		})
	}
	return false
}
