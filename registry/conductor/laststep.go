package conductor

import (
	"math"
	"slices"

	"github.com/muster-agent/muster/registry"
)

// LeastStep is the oldest checkpoint step of an instance that its gang could still go on from: the newest that all have
// who must agree, 0 where they have none in common yet, and beyond every step where the instance goes on from its own
// newest.
func (f Facts) LeastStep(
	d registry.Directive, stored map[registry.Instance]registry.Checkpoint, in registry.Instance,
) int64 {
	c, ok := f.component(in.Component)
	if ok && !c.Resumes() {
		return math.MaxInt64
	}
	all := f.holdings(d, stored, nil, nil)
	step, ok := common(all)
	if !ok {
		return 0
	}
	savers, one := 0, false
	for _, h := range all {
		if h.saver && h.Component == in.Component {
			savers++
			one = one || h.Instance == in
		}
	}
	if steps := stored[in].Steps; one && savers == 1 && c.Ranks != RanksSome && len(steps) > 0 {
		// It may save for all, or be the first: the others come with what is older then.
		step = min(step, steps[max(0, len(steps)-newestNamed)].Step)
	}
	return step
}

// newestNamed is how many of an instance's checkpoints its key names at least.
const newestNamed = 5

// Named are those of an instance's checkpoints that its key goes on naming, in the order of their commits: the newest
// five, and all of this step and later ones. Of more than MostSteps those go that came last before the newest five: who
// is behind comes to the older ones first.
func Named(steps []registry.CheckpointStep, least int64) []registry.CheckpointStep {
	last := max(0, len(steps)-newestNamed)
	var kept []registry.CheckpointStep
	for i, s := range steps {
		if i >= last || s.Step >= least {
			kept = append(kept, s)
		}
	}
	if over := len(kept) - registry.MostSteps; over > 0 {
		end := len(kept) - newestNamed
		kept = slices.Delete(kept, end-over, end)
	}
	return kept
}
