package conductor

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/muster-agent/muster/registry"
)

// failed ends the run when a component or the whole app has too many final failures.
func (r *decision) failed() bool {
	fatal, many := r.fatal()
	if len(fatal) == 0 {
		return false
	}
	sortFirst(fatal)
	f := fatal[0]
	if many == "" {
		if k := r.failedOf(f.Component); k > 1 {
			many = fmt.Sprintf(causeAlsoOfOne, k, f.Component)
		}
	}
	class := verdictClass(f.class)
	return r.conclude(registry.Verdict{
		Outcome: registry.Failed, Class: class, Cause: f.sentence() + many, First: f.Instance.String(), Exit: f.exit,
		Advice: advice(class, r.c.Facts.App, f.Instance, f.exit),
		Retry:  class == registry.ClassHost || class == registry.ClassGPU || class == registry.ClassPreempted,
	})
}

// fatal are the failures that exceed the limit of their component, or else of the whole app; then many says so.
func (r *decision) fatal() (fatal []failure, many string) {
	for _, f := range r.failures {
		if f.facts.Fails && f.facts.MinFailed != nil && r.failedOf(f.Component) >= max(1, *f.facts.MinFailed) {
			fatal = append(fatal, f)
		}
	}
	if len(fatal) > 0 {
		return fatal, ""
	}
	for _, f := range r.failures {
		if f.facts.Fails {
			fatal = append(fatal, f)
		}
	}
	all, _ := r.total()
	if limit := r.c.Facts.Total.failures(all); limit == 0 || len(fatal) < limit {
		return nil, ""
	}
	return fatal, fmt.Sprintf(causeAlsoOfAll, len(fatal), all)
}

// failedOf counts the instances of a component that have failed for good.
func (r *decision) failedOf(component string) (n int) {
	for _, f := range r.failures {
		if f.Component == component {
			n++
		}
	}
	return n
}

// total is how many instances count for the whole app, and how many of them ended with 0.
func (r *decision) total() (all, ended int) {
	for i, f := range r.c.Facts.Components {
		if f.Fails {
			all, ended = all+r.c.Facts.count(r.d, i), ended+r.ended[f.Name]
		}
	}
	return all, ended
}

// failures is how many failed instances fail the app; 0: no number does.
func (t TotalFacts) failures(all int) int {
	if t.FailedShare <= 0 {
		return t.MinFailed
	}
	const dust = 1e-9 // 0.1 × 30 is a little more than 3
	share := max(1, int(math.Ceil(t.FailedShare*float64(all)-dust)))
	if t.MinFailed <= 0 {
		return share
	}
	return min(share, t.MinFailed)
}

// succeeded ends the run when enough instances have ended with 0, or when all chiefs and
// workers have ended; without any, when all awaited instances have.
func (r *decision) succeeded() bool {
	enders, over := 0, 0
	var names []string
	anyEnds := r.anyEnds()
	for i, f := range r.c.Facts.Components {
		if !f.Waited {
			continue
		}
		n := r.ended[f.Name]
		if f.MinSucceeded != nil && *f.MinSucceeded > 0 && n >= *f.MinSucceeded {
			return r.success(fmt.Sprintf(causeEnoughOf, n, f.Name, *f.MinSucceeded))
		}
		if f.Ends || !anyEnds {
			enders += r.c.Facts.count(r.d, i)
			over += r.done[f.Name]
			names = append(names, f.Name)
		}
	}
	if k := r.c.Facts.Total.MinSucceeded; k > 0 {
		if _, n := r.total(); n >= k {
			return r.success(fmt.Sprintf(causeEnoughOfAll, n, k))
		}
	}
	if enders == 0 || over < enders {
		return false
	}
	return r.success(fmt.Sprintf(causeDone, enders, strings.Join(names, ", ")))
}

// success names the instances that failed on the way: a partial success must be visible.
func (r *decision) success(cause string) bool {
	return r.conclude(registry.Verdict{Outcome: registry.Succeeded, Cause: cause + r.casualties()})
}

const namedCasualties = 3 // how many failed instances a success names

func (r *decision) casualties() string {
	if len(r.failures) == 0 {
		return ""
	}
	list := slices.Clone(r.failures)
	sortFirst(list)
	return registry.CasualtiesMark + some(list, namedCasualties, func(f failure) string {
		return fmt.Sprintf("%s (%s)", f.Instance, strings.TrimPrefix(f.happened(), f.String()+" "))
	})
}

// anyEnds tells whether the app has a chief or a worker; without one, the run waits for all to end.
func (r *decision) anyEnds() bool {
	for i, f := range r.c.Facts.Components {
		if f.Waited && f.Ends && r.c.Facts.count(r.d, i) > 0 {
			return true
		}
	}
	return false
}
