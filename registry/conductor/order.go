package conductor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
)

// How often the records of awaited members are read; beyond manyRecords all records are read.
const (
	upEvery     = 500 * time.Millisecond
	upManyEvery = 2 * time.Second
)

// Awaited tells whether some component starts only after the instances of this one: then they report that they are up
// (Member.Up).
func (f Facts) Awaited(component string) bool {
	return slices.ContainsFunc(f.Components, func(c ComponentFacts) bool {
		return slices.Contains(c.After, Requirement{component, OrderStarted})
	})
}

// orders tells whether any component waits for another.
func (f Facts) orders() bool {
	return slices.ContainsFunc(f.Components, func(c ComponentFacts) bool { return len(c.After) > 0 })
}

// deadlock lists the components that can never start because they wait for each other.
func (f Facts) deadlock(d registry.Directive) []string {
	var names []string
	for i, c := range f.Components {
		if f.count(d, i) > 0 {
			names = append(names, c.Name)
		}
	}
	for {
		loose := func(name string) bool {
			c, _ := f.component(name)
			return !slices.ContainsFunc(c.After, func(q Requirement) bool {
				return q.State == OrderStarted && slices.Contains(names, q.Component)
			})
		}
		rest := slices.DeleteFunc(slices.Clone(names), loose)
		if len(rest) == len(names) {
			return rest
		}
		names = rest
	}
}

// released is how far the start order of a generation has come: Released for the next directive, and the requirements
// that do not hold yet. Without an order both are empty.
func (r *decision) released(d registry.Directive, before []string) (names []string, waits []wait) {
	if !r.c.Facts.orders() {
		return nil, nil
	}
	for i, c := range r.c.Facts.Components {
		var open []wait
		if !slices.Contains(before, c.Name) && r.c.Facts.count(d, i) > 0 {
			open = r.requires(d, c)
		}
		if len(open) == 0 {
			names = append(names, c.Name)
		}
		for _, w := range open {
			if !slices.ContainsFunc(waits, func(o wait) bool { return o.Requirement == w.Requirement }) {
				waits = append(waits, w)
			}
		}
	}
	if len(names) == len(r.c.Facts.Components) {
		return nil, nil
	}
	return names, waits
}

// wait is a requirement that does not hold yet, with the instances that it lacks.
type wait struct {
	Requirement
	lacks []registry.Instance
}

func (r *decision) requires(d registry.Directive, c ComponentFacts) []wait {
	var open []wait
	for _, q := range c.After {
		w := wait{Requirement: q}
		for i, f := range r.c.Facts.Components {
			if f.Name != q.Component {
				continue
			}
			for k := range r.c.Facts.count(d, i) {
				if in := (registry.Instance{Component: f.Name, Index: k}); !reached(r.v.Records[in].Member, d, f,
					q.State) {
					w.lacks = append(w.lacks, in)
				}
			}
		}
		if len(w.lacks) > 0 {
			open = append(open, w)
		}
	}
	return open
}

// reached tells whether a member has come as far as a requirement asks. A member that failed for good after it was up
// has been up; a lost one must come up again.
func reached(m registry.Member, d registry.Directive, f ComponentFacts, state string) bool {
	if f.Waited && state == OrderInstalled {
		return true // the roster is sealed
	}
	if m.Inc == "" || m.Run != d.Run {
		return false
	}
	if !f.Waited { // a service runs through all generations
		here := m.Phase == registry.PhaseJoined || m.Phase == registry.PhaseReady
		if state == OrderInstalled {
			return here && staged(m)
		}
		return here && m.Up > 0
	}
	switch resultOf(m, d, f.Scope) {
	case endedWell:
		return true
	case failedForGood:
		return m.Up == d.Gen
	case noResult:
	}
	return m.Phase == registry.PhaseReady && m.Up == d.Gen
}

// release lets the next components start. True means that the step's effect is decided.
func (r *decision) release() bool {
	if len(r.d.Released) == 0 {
		return false
	}
	names, waits := r.released(r.d, r.d.Released)
	if len(names) == len(r.d.Released) {
		return r.releaseOverdue(waits)
	}
	n := r.next()
	n.Released, n.Why = names, waitsFor(waits)
	return r.only(Release{Index: r.v.DirectiveIndex, Directive: n})
}

// releaseOverdue ends a run in which no component could be released within the barrier timeout. Otherwise the waiting
// agents would leave one by one.
func (r *decision) releaseOverdue(waits []wait) bool {
	end := r.c.step.Add(r.limit())
	if r.now.Before(end) {
		r.wakeAt(end)
		return false
	}
	return r.conclude(registry.Verdict{
		Outcome: registry.Failed, Class: registry.ClassTimeout, First: waits[0].lacks[0].String(),
		Cause: fmt.Sprintf(causeNotReleased, strings.Join(r.unreleased(), ", "), seconds(r.limit()),
			waitsFor(waits)),
		Advice: "see why those that are waited for did not start, or raise muster.barrier.timeout",
	})
}

func (r *decision) unreleased() []string {
	var names []string
	for i, c := range r.c.Facts.Components {
		if !r.d.Releases(c.Name) && r.c.Facts.count(r.d, i) > 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// readAwaited rereads the records of awaited members while some component is not released.
func (r *decision) readAwaited() {
	if r.d.Act != registry.ActRun || len(r.d.Released) == 0 {
		return
	}
	_, waits := r.released(r.d, r.d.Released)
	of := map[registry.Instance]bool{}
	for _, w := range waits {
		for _, in := range w.lacks {
			of[in] = true
		}
	}
	period := upEvery
	if len(of) > manyRecords {
		period = upManyEvery
	}
	for _, in := range slices.SortedFunc(maps.Keys(of), compareInstances) {
		f, _ := r.c.Facts.component(in.Component)
		if a := r.absence(in, &f, -1); !slices.Contains(r.due, in) {
			r.again(a, period)
		}
	}
}

func compareInstances(a, b registry.Instance) int {
	if c := strings.Compare(a.Component, b.Component); c != 0 {
		return c
	}
	return a.Index - b.Index
}

// deadlocked ends a run whose components wait for each other: nobody validated the definition.
func (r *decision) deadlocked() bool {
	names := r.c.Facts.deadlock(r.d)
	if len(names) == 0 {
		return false
	}
	return r.only(r.end(registry.Verdict{
		Outcome: registry.Failed, Class: registry.ClassDefinition,
		Cause:  fmt.Sprintf(causeDeadlock, strings.Join(names, ", ")),
		Advice: advice(registry.ClassDefinition, r.c.Facts.App, registry.Instance{}, nil),
	}))
}

// waitsFor describes the requirements that do not hold yet. For none it is the text of a directive without orders.
func waitsFor(waits []wait) string {
	if len(waits) == 0 {
		return allReady
	}
	var parts []string
	for _, w := range waits {
		how := "to have started"
		if w.State == OrderInstalled {
			how = "to be installed"
		}
		names := some(w.lacks, namedMissing, registry.Instance.String)
		parts = append(parts, fmt.Sprintf("%s %s: %s", w.Component, how, names))
	}
	return "waiting for " + strings.Join(parts, "; ")
}

// allReady is the reason of a directive that runs a generation.
const allReady = "all are ready"
