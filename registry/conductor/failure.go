package conductor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-agent/muster/registry"
)

// failure is an instance that did not succeed, and how the failure counts.
type failure struct {
	*absence
	class  registry.Class
	exit   *registry.MemberExit
	budget registry.Budget // the budget it had used
	rule   BudgetRule
	free   bool // no budget is charged
	what   string
}

// failureOf reads from the record how the member's process ended.
func (r *decision) failureOf(a *absence, b registry.Budget, rule BudgetRule) failure {
	f := failure{absence: a, budget: b, rule: rule, class: registry.ClassHost}
	m := a.rec.Member
	switch {
	case m.Exit != nil && m.Exit.Gen == r.d.Gen || a.res == failedForGood:
		f.exit, f.class = m.Exit, cmp.Or(m.Exit.Class, registry.ClassApp)
	case m.Phase == registry.PhaseLeft:
		f.class = registry.ClassLauncher
	case m.Phase == registry.PhaseFailed:
		f.class = registry.ClassApp
	}
	f.free = free(f.class)
	return f
}

// sortFirst moves the first cause to the front: on one machine the earliest end; over several, whose clocks may differ,
// the end that the registry was told first; else the lowest rank.
func sortFirst(list []failure) {
	clock := oneClock(list)
	slices.SortStableFunc(list, func(a, b failure) int {
		if clock {
			return cmp.Or(a.exit.At.Compare(b.exit.At), cmp.Compare(a.rank, b.rank))
		}
		return cmp.Or(cmp.Compare(a.rec.Index, b.rec.Index), cmp.Compare(a.rank, b.rank))
	})
}

// oneClock tells whether all ends are known by the clock of one machine.
func oneClock(list []failure) bool {
	for _, f := range list {
		if f.exit == nil || f.exit.At.IsZero() || f.rec.Boot == "" || f.rec.Boot != list[0].rec.Boot {
			return false
		}
	}
	return true
}

func newestSince(list []failure) time.Time {
	t := time.Time{}
	for _, f := range list {
		t = latest(t, f.since)
	}
	return t
}

func instancesOf(list []failure) []registry.Instance {
	var out []registry.Instance
	for _, f := range list {
		out = append(out, f.Instance)
	}
	return out
}

// sentence describes the failure: instance, exit, attempts.
func (f failure) sentence() string {
	s := f.what
	if s == "" {
		s = f.happened()
	}
	if f.budget.Used > 0 && !f.free {
		s += fmt.Sprintf(causeAfterRestarts, f.budget.Used, plural(f.budget.Used))
		if f.rule.Window > 0 {
			s += " in " + seconds(f.rule.Window)
		}
	}
	if f.exit != nil && f.exit.Why != "" && (f.exit.Code != nil || f.exit.Signal != 0) {
		s += ": " + f.exit.Why
	}
	return s
}

func (f failure) happened() string {
	e := f.exit
	switch {
	case e == nil && f.rec.Phase == registry.PhaseLeft:
		return fmt.Sprintf(causeLeft, f.Instance)
	case e == nil:
		return fmt.Sprintf(causeLost, f.Instance, place(f.rec.Member))
	case e.Class == registry.ClassOOM:
		return fmt.Sprintf(causeMemory, f.Instance)
	case e.Signal != 0:
		return fmt.Sprintf(causeKilled, f.Instance, registry.SignalName(e.Signal))
	case e.Code != nil:
		return fmt.Sprintf(causeExited, f.Instance, *e.Code)
	case e.Why != "":
		return fmt.Sprintf(causeFailed, f.Instance, e.Why)
	}
	return fmt.Sprintf(causeUnknown, f.Instance, f.class)
}
